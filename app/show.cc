// pipesim show: what a schedule looks like, as a picture or as the passes of every device in order.
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <unistd.h>

#include "app/commands.h"
#include "sim/report/picture.h"
#include "sim/report/table.h"
#include "sim/scenario/problem.h"
#include "sim/scenario/read_scenario.h"

namespace pipesim {
namespace {

struct ShowOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string format = "picture";
  int columns = 120;
};

int show(const ShowOptions& options, const CommandLine& line) {
  const Scenario scenario =
      read_scenario_file(options.file, line.where(options.file), line.overrides(options.overrides));
  std::string text;
  for (const ScheduleChoice& choice : scenario.schedules) {
    if (scenario.schedules.size() > 1) text += fmt::format("# {}\n", label_of(choice));
    if (options.format == "text") {
      text += pass_lists(*make_program(choice, make_problem(scenario, choice)));
    } else {
      const Simulation simulation = simulate(scenario, choice);
      text += draw(simulation, {.columns = options.columns, .colour = ::isatty(1) == 1});
      text += device_table(scenario, simulation) + critical_path_line(simulation);
    }
  }
  std::cout << text << std::flush;
  return kDone;
}

}  // namespace

Subcommand add_show(CLI::App& app) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App* parser = app.add_subcommand("show", "Show the schedules of a scenario");
  parser->add_option("file", options->file, "Scenario (YAML)")->required();
  parser->add_option("overrides", options->overrides, "path.to.key=value, over what the file says");
  parser
      ->add_option("--format", options->format,
                   "picture (with idle time and peaks), or text: <stage><kind><microbatch>, "
                   "a line per device")
      ->check(CLI::IsMember({"picture", "text"}));
  parser->add_option("--columns", options->columns, "Width of the picture")
      ->check(CLI::Range(10, 10000));
  return {parser, [options](const CommandLine& line) { return show(*options, line); }};
}

}  // namespace pipesim
