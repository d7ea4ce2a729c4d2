// pipesim: the command line. Everything below throws; here it is printed and becomes an exit code.
#include <array>
#include <csignal>
#include <fmt/format.h>
#include <iostream>

#include "app/commands.h"
#include "sim/core/text.h"

namespace pipesim {
namespace {

std::vector<std::string> option_names(const CLI::App& parser) {
  std::vector<std::string> names;
  for (const CLI::Option* option : parser.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// CLI11 says what is wrong; we add where, and what was probably meant.
[[noreturn]] void refuse(const CommandLine& line, const CLI::App& app,
                         const CLI::ParseError& error) {
  const CLI::App* parser = &app;
  if (!app.get_subcommands().empty()) parser = app.get_subcommands().front();
  for (size_t i = 0; i < line.arguments().size(); ++i) {
    const std::string name = line.arguments()[i].substr(0, line.arguments()[i].find('='));
    if (!name.starts_with("-") || name == "-") continue;
    const auto names = option_names(*parser);
    if (std::ranges::find(names, name) == names.end()) {
      throw InputError(line.where(i),
                       fmt::format("unknown option '{}'{}", name, suggestion(name, names)));
    }
    if (std::string_view(error.what()).find(name) != std::string_view::npos) {
      throw InputError(line.where(i), error.what());
    }
  }
  throw InputError(line.where(line.arguments().size()), error.what());
}

void check_subcommand(const CommandLine& line, const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands({})) names.push_back(each->get_name());
  if (line.arguments().empty()) {
    throw InputError(line.where(0), "expected a subcommand" + suggestion("", names));
  }
  const std::string& given = line.arguments().front();
  if (!given.starts_with("-") && std::ranges::find(names, given) == names.end()) {
    throw InputError(line.where(0),
                     fmt::format("unknown subcommand '{}'{}", given, suggestion(given, names)));
  }
}

int run(const CommandLine& line, int argc, const char* const* argv) {
  CLI::App app{"Simulator of pipeline-parallel training clusters", "pipesim"};
  app.set_version_flag("--version", PIPESIM_VERSION);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 a check failed or the request cannot be met, 2 bad input.");
  const std::array subcommands{
      add_new(app),         add_run(app),    add_sweep(app), add_search(app),   add_plan(app),
      add_sensitivity(app), add_show(app),   add_plot(app),  add_report(app),   add_gallery(app),
      add_export(app),      add_import(app), add_list(app),  add_validate(app), add_calibrate(app)};
  check_subcommand(line, app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    refuse(line, app, error);
  }
  for (const Subcommand& subcommand : subcommands) {
    if (subcommand.parser->parsed()) return subcommand.run(line);
  }
  return kBadInput;
}

}  // namespace
}  // namespace pipesim

int main(int argc, char** argv) {
  // A reader that goes away (`pipesim ... | head`) ends the program quietly.
  std::signal(SIGPIPE, SIG_DFL);
  std::ios::sync_with_stdio(false);
  try {
    const pipesim::CommandLine line(argc, argv);
    const int code = pipesim::run(line, argc, argv);
    if (!std::cout.flush()) {
      throw pipesim::InputError(line.where(0), "cannot write to standard output");
    }
    return code;
  } catch (const pipesim::InputError& error) {
    std::cerr << "pipesim: " << error.what() << '\n';
    return pipesim::kBadInput;
  } catch (const pipesim::InfeasibleError& error) {
    std::cerr << "pipesim: " << error.what() << '\n';
    return pipesim::kFailed;
  } catch (const std::bad_alloc&) {
    std::cerr << "pipesim: not enough memory for this scenario\n";
    return pipesim::kFailed;
  } catch (const std::exception& error) {
    std::cerr << "pipesim: internal error: " << error.what() << '\n';
    return pipesim::kFailed;
  }
}
