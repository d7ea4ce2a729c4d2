// pipesim run: simulate every schedule of a scenario and report.
#include <filesystem>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <unistd.h>

#include "app/commands.h"
#include "sim/report/json.h"
#include "sim/report/picture.h"
#include "sim/report/table.h"
#include "sim/report/trace.h"
#include "sim/scenario/read_scenario.h"

namespace pipesim {
namespace {

struct RunOptions {
  std::string file;
  std::vector<std::string> overrides;
  std::string json, csv, trace;
  bool timings = false;
  bool devices = false;
  bool no_picture = false;
  int columns = 120;
};

// With several schedules each gets its own trace: out.json becomes out.zb-h1.json.
std::string trace_path(const RunOptions& options, const Scenario& scenario, size_t index) {
  if (scenario.schedules.size() == 1) return options.trace;
  const std::filesystem::path base(options.trace);
  std::string name = std::filesystem::path(scenario.schedules[index].name).stem().string();
  for (size_t i = 0; i < scenario.schedules.size(); ++i) {
    // The same schedule twice, with other options: number them.
    if (i != index && scenario.schedules[i].name == scenario.schedules[index].name) {
      name += fmt::format("-{}", index);
      break;
    }
  }
  return (base.parent_path() /
          fmt::format("{}.{}{}", base.stem().string(), name, base.extension().string()))
      .string();
}

void print_for_people(const RunOptions& options, const Scenario& scenario,
                      const std::vector<Simulation>& simulations) {
  std::cout << comparison_table(scenario, simulations);
  for (size_t i = 0; i < simulations.size(); ++i) {
    if (options.no_picture && !options.devices) break;
    std::cout << '\n' << scenario.schedules[i].name << '\n';
    if (!options.no_picture) {
      std::cout << draw(simulations[i], {.columns = options.columns, .colour = ::isatty(1) == 1});
    }
    if (options.devices) std::cout << device_table(scenario, simulations[i]);
  }
  std::cout.flush();
}

int run(const RunOptions& options, const CommandLine& line) {
  const Scenario scenario = read_scenario_file(options.file, line.overrides(options.overrides));
  if (options.trace == "-" && scenario.schedules.size() > 1) {
    throw InputError(line.where("-"), "several schedules make several traces: name a file");
  }
  std::vector<Simulation> simulations;
  const bool progress = ::isatty(2) == 1 && scenario.schedules.size() > 1;
  for (const ScheduleChoice& choice : scenario.schedules) {
    if (progress) {
      std::cerr << fmt::format("\r\033[K[{}/{}] {}", simulations.size() + 1,
                               scenario.schedules.size(), choice.name)
                << std::flush;
    }
    simulations.push_back(simulate(scenario, choice));
  }
  if (progress) std::cerr << "\r\033[K" << std::flush;
  // Nothing is written before everything has been simulated.
  if (!options.json.empty()) {
    write_output(options.json, line.where(options.json), [&](std::ostream& out) {
      write_json(out, scenario, simulations, {PIPESIM_VERSION, options.timings});
    });
  }
  if (!options.csv.empty()) {
    write_output(options.csv, line.where(options.csv),
                 [&](std::ostream& out) { out << comparison_csv(scenario, simulations); });
  }
  for (size_t i = 0; i < simulations.size() && !options.trace.empty(); ++i) {
    write_output(
        trace_path(options, scenario, i), line.where(options.trace),
        [&](std::ostream& out) { write_trace(out, simulations[i], scenario.schedules[i].name); });
  }
  const bool to_stdout = options.json == "-" || options.csv == "-" || options.trace == "-";
  if (!to_stdout) print_for_people(options, scenario, simulations);
  return kDone;
}

}  // namespace

Subcommand add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* parser = app.add_subcommand("run", "Simulate the schedules of a scenario");
  parser->add_option("file", options->file, "Scenario (YAML)")->required();
  parser->add_option("overrides", options->overrides, "path.to.key=value, over what the file says");
  parser->add_option("--json", options->json, "Write the results as JSON ('-': standard output)");
  parser->add_option("--csv", options->csv, "Write the comparison as CSV ('-': standard output)");
  parser->add_option(
      "--trace", options->trace,
      "Write Chrome/Perfetto traces; with several schedules one each, NAME inserted");
  parser->add_flag("--timings", options->timings, "Add wall-clock seconds to the JSON");
  parser->add_flag("--devices", options->devices, "Print idle time by cause and peaks per device");
  parser->add_flag("--no-picture", options->no_picture, "Leave the pictures out");
  parser->add_option("--columns", options->columns, "Width of the pictures")
      ->check(CLI::Range(10, 10000));
  return {parser, [options](const CommandLine& line) { return run(*options, line); }};
}

}  // namespace pipesim
