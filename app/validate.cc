// pipesim validate: the simulator against published figures, cell by cell.
#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "sim/core/data_folder.h"
#include "sim/core/text.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/validation.h"

namespace pipesim {
namespace {

struct ValidateOptions {
  std::string name;
  std::string data;
  std::string json;
  bool list = false;
};

int validate(const ValidateOptions& options, const CommandLine& line) {
  std::vector<std::string> names;
  for (const Validation& validation : validations()) names.push_back(validation.name);
  if (options.list) {
    for (const Validation& validation : validations()) {
      std::cout << fmt::format("{}: {}\n", validation.name, validation.title);
    }
    return kDone;
  }
  const std::string wanted = validation_name(options.name);
  if (!wanted.empty() && std::ranges::find(names, wanted) == names.end()) {
    throw InputError(
        line.where(options.name),
        fmt::format("unknown validation '{}'{}", options.name, suggestion(options.name, names)));
  }
  const std::string folder = options.data.empty() ? data_folder("papers") : options.data;
  std::vector<Cell> all;
  std::string text;
  bool failed = false;
  for (const Validation& validation : validations()) {
    if (!wanted.empty() && validation.name != wanted) continue;
    // A folder of one's own need not hold every paper, unless it is asked for.
    const bool any = std::ranges::any_of(
        names, [&folder](const std::string& name) { return has_paper(folder, name); });
    if (wanted.empty() && any && !has_paper(folder, validation.name)) continue;
    const auto cells = validation.compare(folder, line.where(options.data));
    text += validation_table(validation, cells);
    failed = failed || missed(cells);
    all.insert(all.end(), cells.begin(), cells.end());
  }
  write_outputs({{options.json, line.where(options.json),
                  [&all](std::ostream& out) { out << validation_json(all); }}});
  if (options.json != "-") std::cout << text << std::flush;
  return failed ? kFailed : kDone;
}

}  // namespace

Subcommand add_validate(CLI::App& app) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* parser = app.add_subcommand("validate", "Compare with published figures, cell by cell");
  parser->add_option("name", options->name,
                     "Which paper (when not given all but search, which takes a minute)");
  parser->add_option("--data", options->data, "Folder with tables of the same format");
  parser->add_option("--json", options->json, "Write the cells as JSON ('-': standard output)");
  parser->add_flag("--list", options->list, "List the papers");
  return {parser, [options](const CommandLine& line) { return validate(*options, line); }};
}

}  // namespace pipesim
