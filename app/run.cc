// pipesim run: simulate every schedule of a scenario and report.
#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <utility>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/comparison.h"
#include "app/refusals.h"
#include "sim/core/data_folder.h"
#include "sim/prepare/knife_edge.h"
#include "sim/read/scenario.h"
#include "sim/report/html/html.h"
#include "sim/report/json/json.h"
#include "sim/report/json/trace.h"
#include "sim/report/text/picture.h"
#include "sim/report/text/table.h"

namespace pipesim {
namespace {

struct RunOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string json, csv, html, memory, trace;
  bool timings = false;
  bool devices = false;
  bool picture = false;
  bool no_picture = false;  // of an earlier release, and the default now
  int columns = 100;
  std::string colour = "auto";
};

std::string page_of(const RunOptions& options, const Comparison& comparison,
                    const CommandLine& line) {
  HtmlReport report(PIPESIM_VERSION);
  report.add(read_report_input(options.file, line.where(options.file)), options.overrides,
             comparison.answers, comparison.refused);
  return report.page(data_folder("report"), line.where(0));
}

std::vector<Output> outputs(const RunOptions& options, const Comparison& comparison,
                            const CommandLine& line) {
  const std::vector<Answer>& answers = comparison.answers;
  std::vector<Output> all{
      {options.json, line.of_option(options.json),
       [&](std::ostream& out) {
         write_json(out, answers, {PIPESIM_VERSION, options.timings, comparison.refused});
       }},
      {options.csv, line.of_option(options.csv),
       [&](std::ostream& out) { out << comparison_csv(answers); }},
      {options.html, line.of_option(options.html),
       [&](std::ostream& out) { out << page_of(options, comparison, line); }},
      {options.memory, line.of_option(options.memory),
       [&](std::ostream& out) { out << memory_csv(answers); }}};
  if (options.trace.empty()) return all;
  const auto paths = one_path_each(options.trace, names_of(answers));
  for (size_t i = 0; i < paths.size(); ++i) {
    all.push_back({paths[i], line.of_option(options.trace), [&, i](std::ostream& out) {
                     write_trace(out, answers[i].result, answers[i].made.choice.name);
                   }});
  }
  return all;
}

void print_for_people(const RunOptions& options, const Comparison& comparison) {
  std::cout << comparison_table(comparison.answers) << refusals(comparison.refused);
  for (const auto& [made, result, advice] : comparison.answers) {
    if (made.scenario->transfers == Transfers::kBlocking && !made.blocking) {
      std::cout << made.choice.name
                << ": its runtime sends asynchronously, no transfer holds a device\n";
    }
    if (const std::string edge = knife_edge_of(made); !edge.empty()) {
      std::cout << made.label << ": " << edge << '\n';
    }
  }
  for (const auto& [made, result, advice] : comparison.answers) {
    if (!options.picture && !options.devices) break;
    std::cout << '\n' << made.label << '\n';
    if (options.picture) {
      std::cout << draw(result, {.columns = options.columns, .colour = coloured(options.colour)});
    }
    if (options.devices) std::cout << device_table(made, result) << critical_path_line(result);
  }
  std::cout.flush();
}

// Tables and --csv need only sums by device.
Detail detail_for(const RunOptions& options) {
  if (options.devices || !options.json.empty() || !options.html.empty()) return Detail::kCauses;
  const bool drawn = options.picture || !options.memory.empty() || !options.trace.empty();
  return drawn ? Detail::kTimeline : Detail::kNumbers;
}

int run(const RunOptions& options, const CommandLine& line) {
  Scenario scenario =
      read_scenario_file(options.file, line.where(options.file), line.overrides(options.overrides));
  if (options.trace == "-" && scenario.schedules.size() > 1) {
    throw InputError(line.where("-"), "several schedules make several traces: name a file");
  }
  check_writable({options.json, options.csv, options.html, options.memory, options.trace}, line);
  const Comparison comparison = compare(std::move(scenario), detail_for(options));
  // Nothing is written before everything has been simulated.
  const auto files = outputs(options, comparison, line);
  write_outputs(files);
  if (std::ranges::find(files, "-", &Output::path) == files.end()) {
    print_for_people(options, comparison);
  } else {
    std::cerr << refusals(comparison.refused);
  }
  const bool fits = std::ranges::all_of(comparison.answers, [](const Answer& each) {
    const auto& host = each.result.host;
    return each.result.fits != MemoryFit::kNo && (!host || host->fits());
  });
  return fits && comparison.refused.empty() ? kDone : kFailed;
}

}  // namespace

Subcommand add_run(Parser& program) {
  auto options = std::make_shared<RunOptions>();
  Parser& parser = program.add_command(
      "run", "Simulate the schedules of a scenario",
      "  pipesim run scenarios/quickstart.yaml 1f1b zb-h2 batch.num_microbatches=8\n"
      "  pipesim run scenarios/llama3-70b-h100.yaml --json run.json --html run.html");
  add_scenario(parser, options->file, options->overrides);
  add_json(parser, options->json, "the results");
  add_csv(parser, options->csv, "the comparison");
  add_html(parser, options->html, "the results");
  parser.add_option("--memory", options->memory, "Write memory over time per device as CSV");
  parser.add_option("--trace", options->trace,
                    "Write Chrome/Perfetto traces; with several schedules one each, NAME inserted");
  parser.add_flag("--timings", options->timings, "Add wall-clock seconds to the JSON");
  parser.add_flag("--devices", options->devices,
                  "Print idle time by cause, peaks and the critical path");
  parser.add_flag("--picture", options->picture, "Draw each schedule: a line per device");
  parser.retire(parser.add_flag("--no-picture", options->no_picture, ""),
                "--no-picture is the default now; --picture draws the schedules");
  parser.add_option("--columns", options->columns, "Width of the pictures").range(10, 10000);
  parser.add_option("--color", options->colour, "Colour the pictures: auto, always or never")
      .one_of({"auto", "always", "never"});
  parser.add_threads();
  return {&parser, [options](const CommandLine& line) { return run(*options, line); }};
}

}  // namespace pipesim
