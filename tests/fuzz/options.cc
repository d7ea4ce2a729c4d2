// Command lines of `pipesim plan`: words between blanks.
#include <sstream>
#include <string>
#include <vector>

#include "app/plan_options.h"
#include "tests/fuzz/target.h"

namespace pipesim::fuzz {
namespace {

const Register kPlan{{"plan_options", Form::kText, [](const std::string& text) {
                        std::vector<std::string> words{"pipesim"};
                        std::istringstream in(text);
                        for (std::string word; in >> word;) {
                          // --help prints for people only.
                          if (!word.starts_with("-h") && !word.starts_with("--h")) {
                            words.push_back(word);
                          }
                        }
                        std::vector<const char*> arguments;
                        for (const std::string& word : words) arguments.push_back(word.c_str());
                        const int count = static_cast<int>(arguments.size());
                        PlanCommand command;
                        Parser parser("pipesim", "");
                        add_plan_options(parser, command);
                        try {
                          if (!parser.parse(count, arguments.data())) return;
                        } catch (const OptionError&) {
                          return;
                        }
                        (void)read_plan_command(command, {count, arguments.data()});
                      }}};

}  // namespace
}  // namespace pipesim::fuzz
