// pipesim show: what a schedule looks like, as a picture of text or SVG, or as the passes of every
// device in order.
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <sstream>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/comparison.h"
#include "app/refusals.h"
#include "sim/case/program.h"
#include "sim/planning/description.h"
#include "sim/read/scenario.h"
#include "sim/report/svg/svg.h"
#include "sim/report/text/block.h"
#include "sim/report/text/costs.h"
#include "sim/report/text/picture.h"
#include "sim/report/text/table.h"

namespace pipesim {
namespace {

struct ShowOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string format = "picture";
  std::string output = "-";
  std::string colour = "auto";
  int columns = 100;
  bool costs = false;
};

std::string block_of(const ShowOptions& options, const Case& made) {
  const auto& described = made.choice.described;
  if (!described) {
    throw InputError(made.choice.where,
                     fmt::format("{} is not described by a block: expected {{file: FILE}}, such as "
                                 "schedules/descriptions/1f1b.yaml",
                                 made.choice.name));
  }
  (void)make_program(made);  // refuses what it does not accept
  if (described->description->rules) return rounds_text(*described->description, made.problem);
  return draw_block(*described->description, made.problem, options.columns);
}

std::string text_of(const ShowOptions& options, const Case& made) {
  if (options.costs) return cost_breakdown(made);
  if (options.format == "text") return pass_lists(*make_program(made));
  if (options.format == "block") return block_of(options, made);
  // A file is not a terminal, wherever standard output leads.
  const bool colour =
      options.output == "-" || options.colour != "auto" ? coloured(options.colour) : false;
  const Result result = simulate(made);
  std::string text = draw(result, {.columns = options.columns, .colour = colour});
  text += device_table(made, result) + critical_path_line(result);
  if (made.layout) text += fmt::format("layout: {}\n", to_megatron_layout(*made.layout));
  return text;
}

std::string drawing_of(const Case& made) {
  std::ostringstream svg;
  write_svg(svg, made, simulate(made), {.name = made.choice.name});
  return svg.str();
}

// The answer for a schedule.
struct Shown {
  std::string schedule;
  std::string label;
  std::string text;
};

std::vector<Output> outputs(const ShowOptions& options, const std::vector<Shown>& all,
                            const Location& where) {
  std::vector<Output> files;
  if (options.format == "svg") {
    std::vector<std::string> names;
    for (const Shown& each : all) names.push_back(each.schedule);
    const auto paths = one_path_each(options.output, names);
    for (size_t i = 0; i < all.size(); ++i) {
      files.push_back({paths[i], where, [&all, i](std::ostream& out) { out << all[i].text; }});
    }
    return files;
  }
  files.push_back({options.output, where, [&all](std::ostream& out) {
                     for (const Shown& each : all) {
                       if (all.size() > 1) out << fmt::format("# {}\n", each.label);
                       out << each.text;
                     }
                   }});
  return files;
}

int show(const ShowOptions& options, const CommandLine& line) {
  Scenario scenario =
      read_scenario_file(options.file, line.where(options.file), line.overrides(options.overrides));
  const Location where = line.of_option(options.output);
  const bool drawn = options.format == "svg";
  if (drawn && options.output == "-" && scenario.schedules.size() > 1) {
    throw InputError(where, "several schedules make several drawings: name a file with -o");
  }
  std::vector<Shown> all;
  const auto refused = each_feasible(std::move(scenario), [&](const Case& made) {
    all.push_back(
        {made.choice.name, made.label, drawn ? drawing_of(made) : text_of(options, made)});
  });
  write_outputs(outputs(options, all, where));
  std::cerr << refusals(refused);
  return refused.empty() ? kDone : kFailed;
}

}  // namespace

Subcommand add_show(Parser& program) {
  auto options = std::make_shared<ShowOptions>();
  Parser& parser =
      program.add_command("show", "Show the schedules of a scenario",
                          "  pipesim show scenarios/quickstart.yaml zb-h1 --columns 90\n"
                          "  pipesim show scenarios/llama3-70b-h100.yaml zb-v --costs");
  add_scenario(parser, options->file, options->overrides);
  const Option format =
      parser
          .add_option("--format", options->format,
                      "picture (with idle time and peaks), svg, text: <stage><kind><microbatch>, "
                      "a line per device; or block: what a described schedule repeats")
          .one_of({"picture", "svg", "text", "block"});
  parser
      .add_flag("--costs", options->costs,
                "Instead: what seconds and bytes are made of, with the source of each number")
      .excludes(format);
  add_output(parser, options->output,
             "File to write ('-': standard output); with several schedules an SVG each, "
             "NAME inserted");
  parser.add_option("--columns", options->columns, "Width of the picture").range(10, 10000);
  parser.add_option("--color", options->colour, "Colour the picture: auto, always or never")
      .one_of({"auto", "always", "never"});
  return {&parser, [options](const CommandLine& line) { return show(*options, line); }};
}

}  // namespace pipesim
