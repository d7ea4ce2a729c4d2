// pipesim show: what a schedule looks like, as a picture of text or SVG, or as the passes of every
// device in order.
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <sstream>

#include "app/commands.h"
#include "sim/report/costs.h"
#include "sim/report/picture.h"
#include "sim/report/svg.h"
#include "sim/report/table.h"
#include "sim/scenario/problem.h"
#include "sim/scenario/read_scenario.h"

namespace pipesim {
namespace {

struct ShowOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string format = "picture";
  std::string output = "-";
  std::string colour = "auto";
  int columns = 120;
  bool costs = false;
};

std::string text_of(const ShowOptions& options, const Scenario& scenario) {
  std::string text;
  // A file is not a terminal, wherever standard output leads.
  const bool colour =
      options.output == "-" || options.colour != "auto" ? coloured(options.colour) : false;
  for (const ScheduleChoice& choice : scenario.schedules) {
    if (scenario.schedules.size() > 1) text += fmt::format("# {}\n", label_of(choice));
    if (options.costs) {
      text += cost_breakdown(scenario, choice);
    } else if (options.format == "text") {
      text += pass_lists(*make_program(choice, make_problem(scenario, choice)));
    } else {
      const Simulation simulation = simulate(scenario, choice);
      text += draw(simulation, {.columns = options.columns, .colour = colour});
      text += device_table(scenario, simulation) + critical_path_line(simulation);
      if (scenario.modelled) {
        const int devices = scenario.parallel.pipeline;
        text += fmt::format("layout: {}\n",
                            to_megatron_layout(layout_of(*scenario.modelled, choice, devices)));
      }
    }
  }
  return text;
}

// One drawing per schedule.
std::vector<Output> drawings(const ShowOptions& options, const Scenario& scenario,
                             const Location& where) {
  if (options.output == "-" && scenario.schedules.size() > 1) {
    throw InputError(where, "several schedules make several drawings: name a file with -o");
  }
  const auto paths = one_path_each(options.output, scenario.schedules);
  std::vector<Output> outputs;
  for (size_t i = 0; i < paths.size(); ++i) {
    const ScheduleChoice& choice = scenario.schedules[i];
    std::ostringstream svg;
    write_svg(svg, simulate(scenario, choice), {.name = choice.name});
    outputs.push_back({paths[i], where, [text = svg.str()](std::ostream& out) { out << text; }});
  }
  return outputs;
}

int show(const ShowOptions& options, const CommandLine& line) {
  const Scenario scenario =
      read_scenario_file(options.file, line.where(options.file), line.overrides(options.overrides));
  const Location where = line.where(options.output);
  if (options.format == "svg") {
    write_outputs(drawings(options, scenario, where));
  } else {
    write_outputs({{options.output, where,
                    [text = text_of(options, scenario)](std::ostream& out) { out << text; }}});
  }
  return kDone;
}

}  // namespace

Subcommand add_show(CLI::App& app) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App* parser = app.add_subcommand("show", "Show the schedules of a scenario");
  parser->add_option("file", options->file, "Scenario (YAML)")->required();
  parser->add_option("overrides", options->overrides, "path.to.key=value, over what the file says");
  CLI::Option* format =
      parser
          ->add_option(
              "--format", options->format,
              "picture (with idle time and peaks), svg, or text: <stage><kind><microbatch>, "
              "a line per device")
          ->check(CLI::IsMember({"picture", "svg", "text"}));
  parser
      ->add_flag("--costs", options->costs,
                 "Instead: what seconds and bytes are made of, with the source of each number")
      ->excludes(format);
  parser->add_option("-o,--output", options->output,
                     "File to write ('-': standard output); with several schedules an SVG each, "
                     "NAME inserted");
  parser->add_option("--columns", options->columns, "Width of the picture")
      ->check(CLI::Range(10, 10000));
  parser->add_option("--color", options->colour, "Colour the picture: auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  return {parser, [options](const CommandLine& line) { return show(*options, line); }};
}

}  // namespace pipesim
