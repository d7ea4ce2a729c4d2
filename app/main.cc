// pipesim: the command line. Everything below throws; here it is printed and becomes an exit code.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <iostream>
#include <string_view>
#include <system_error>
#include <vector>

#include "app/commands.h"
#include "app/meant_words.h"
#include "app/options/manual.h"
#include "app/refused_options.h"
#include "sim/core/text.h"
#include "sim/core/thread_team.h"

namespace pipesim {
namespace {

void check_subcommand(const CommandLine& line, const Parser& program) {
  std::vector<std::string> names;
  for (const auto& command : program.commands()) names.push_back(command->name());
  const std::string& given = line.arguments().front();
  if (!given.starts_with("-") && std::ranges::find(names, given) == names.end()) {
    throw InputError(line.where(0),
                     fmt::format("unknown subcommand '{}'{}", given, suggestion(given, names)));
  }
}

// `pipesim document FORM`, which installation calls, is in no help.
int document(const CommandLine& line, const Parser& program) {
  const std::vector<std::string> forms{"man", "bash", "zsh", "fish"};
  const std::string form = line.arguments().size() == 2 ? line.arguments().back() : "";
  if (form == "man") {
    std::cout << man_page(program, PIPESIM_VERSION);
  } else if (form == "bash") {
    std::cout << bash_completion(program);
  } else if (form == "zsh") {
    std::cout << zsh_completion(program);
  } else if (form == "fish") {
    std::cout << fish_completion(program);
  } else {
    throw InputError(line.where(form), "unknown form" + suggestion(form, forms));
  }
  return kDone;
}

// `--catalog DIR`, before or behind any command, is PIPESIM_CATALOG for it: the rest of the line.
std::vector<const char*> without_catalog(const CommandLine& line, int argc,
                                         const char* const* argv) {
  constexpr std::string_view kOption = "--catalog";
  std::vector<const char*> rest;
  for (int i = 0; i < argc; ++i) {
    const std::string_view text = argv[i];
    const bool joined = text.starts_with("--catalog=");
    if (i == 0 || (text != kOption && !joined)) {
      rest.push_back(argv[i]);
      continue;
    }
    if (!joined && i + 1 == argc) {
      throw InputError(line.where(static_cast<size_t>(i)), "--catalog needs a folder");
    }
    const std::string folder(joined ? text.substr(kOption.size() + 1) : argv[++i]);
    ::setenv("PIPESIM_CATALOG", folder.c_str(), 1);
  }
  return rest;
}

using AddCommand = Subcommand (*)(Parser&);

struct Group {
  const char* title;
  std::vector<AddCommand> commands;
};

// The commands in the order of --help.
std::vector<Group> groups() {
  return {
      {"Ask",
       {add_new, add_run, add_plan, add_serve, add_search, add_improve, add_prove, add_sweep,
        add_sensitivity, add_goodput, add_execute}},
      {"Look", {add_show, add_compare, add_report, add_workbench, add_plot, add_gallery, add_list}},
      {"Exchange", {add_export, add_import, add_schema}},
      {"Trust", {add_validate, add_reproduce, add_anchor, add_calibrate, add_doctor}}};
}

// Settings that are common to all commands.
void apply(const Parser& command) {
  for (const std::string& hint : command.hints()) std::cerr << "pipesim: hint: " << hint << '\n';
  if (command.threads()) limit_threads(*command.threads());
}

int run(const CommandLine& given) {
  Parser program("pipesim", "Simulator of pipeline-parallel training clusters");
  program.add_version(PIPESIM_VERSION);
  program.require_command();
  const std::string codes =
      "Exit codes: 0 done, 1 a check failed or the request cannot be met, 2 bad input.";
  program.close_with(codes);
  std::vector<Subcommand> subcommands;
  for (const Group& group : groups()) {
    program.begin_group(group.title);
    for (const AddCommand add : group.commands) subcommands.push_back(add(program));
  }
  program.close_with("`pipesim COMMAND --help` has a command's options and two examples.\n" +
                     codes);
  if (given.arguments().empty()) {
    std::cout << program.help_page();
    return kDone;
  }
  if (given.arguments().front() == "document") return document(given, program);
  check_subcommand(given, program);
  const CommandLine line(given, meant_words(given, program));
  std::vector<const char*> argv{"pipesim"};
  for (const std::string& word : line.arguments()) argv.push_back(word.c_str());
  const int argc = static_cast<int>(argv.size());
  try {
    if (!program.parse(argc, argv.data())) return kDone;
  } catch (const OptionError& error) {
    refuse_options(line, program.chosen_command(), error);
  }
  apply(program.chosen_command());
  for (const Subcommand& subcommand : subcommands) {
    if (subcommand.parser->chosen()) return subcommand.run(line);
  }
  return kBadInput;
}

// Names in a message are of anyone's making: no terminal obeys them.
void say(const std::string& what) {
  std::cerr << "pipesim: " << shortened(printable(what)) << '\n';
}

}  // namespace
}  // namespace pipesim

int main(int argc, char** argv) {
  // A reader that goes away (`pipesim ... | head`) ends the program quietly.
  std::signal(SIGPIPE, SIG_DFL);
  // A file that grows over the limit of its size is an error of writing.
  std::signal(SIGXFSZ, SIG_IGN);
  std::ios::sync_with_stdio(false);
  try {
    const pipesim::StandardOutput output;
    const pipesim::CommandLine whole(argc, argv);
    const auto rest = pipesim::without_catalog(whole, argc, argv);
    const int count = static_cast<int>(rest.size());
    const pipesim::CommandLine line(count, rest.data());
    const int code = pipesim::run(line);
    pipesim::StandardOutput::finish();
    return code;
  } catch (const pipesim::InputError& error) {
    pipesim::say(error.what());
    return pipesim::kBadInput;
  } catch (const pipesim::InfeasibleError& error) {
    pipesim::say(error.what());
    return pipesim::kFailed;
  } catch (const std::bad_alloc&) {
    pipesim::say("not enough memory for this scenario");
    return pipesim::kFailed;
  } catch (const std::system_error& error) {  // what the system has refused
    pipesim::say(error.what());
    return pipesim::kFailed;
  } catch (const std::exception& error) {
    pipesim::say(std::string("internal error: ") + error.what());
    return pipesim::kFailed;
  }
}
