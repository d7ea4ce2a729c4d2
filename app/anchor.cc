// pipesim anchor: from measured steps the factors that simulated ones are off by.
#include <fmt/format.h>
#include <iostream>
#include <memory>

#include "app/commands.h"
#include "app/common_options.h"
#include "app/progress.h"
#include "sim/anchor/measured_runs.h"
#include "sim/anchor/report.h"
#include "sim/anchor/standing.h"
#include "sim/core/text.h"

namespace pipesim {
namespace {

struct AnchorOptions {
  std::vector<std::string> arguments;
  std::vector<std::string> measured;
  std::vector<std::string> logs;
  std::string runs;
  std::string output;
  bool accept = false;
};

std::vector<MeasuredText> measurements(const AnchorOptions& options, const CommandLine& line) {
  std::vector<MeasuredText> all;
  for (const std::string& each : options.measured) all.push_back({each, {}, line.where(each)});
  for (const std::string& each : options.logs) all.push_back({{}, each, line.where(each)});
  return all;
}

std::vector<MeasuredStep> read_runs(const AnchorOptions& options, const CommandLine& line) {
  std::vector<std::string> files, changes;
  for (const std::string& each : options.arguments) {
    (each.find('=') == std::string::npos ? files : changes).push_back(each);
  }
  const auto overrides = line.overrides(changes);
  const auto measured = measurements(options, line);
  if (!options.runs.empty()) {
    if (!files.empty() || !measured.empty()) {
      throw InputError(line.where(options.runs), "says itself which scenarios were measured");
    }
    return read_measured_runs(options.runs, line.where(options.runs), overrides);
  }
  if (!options.measured.empty() && !options.logs.empty()) {
    throw InputError(line.where(options.logs.front()),
                     "stands beside --measured: a file of --runs may have both");
  }
  if (files.empty() || files.size() != measured.size()) {
    throw InputError(line.where(files.empty() ? std::string() : files.back()),
                     fmt::format("expected a --measured or --log for each scenario, or --runs; "
                                 "there are {} scenarios and {} measurements",
                                 files.size(), measured.size()));
  }
  std::vector<MeasuredStep> runs;
  for (size_t i = 0; i < files.size(); ++i) {
    runs.push_back(read_measured_run(files[i], line.where(files[i]), overrides, measured[i]));
  }
  return runs;
}

struct Standings {
  std::string text;  // a line each
  bool outside = false;
};

Standings standings_of(const std::vector<MeasuredStep>& runs) {
  Standings all;
  for (const auto& [scenario, measured, name] : runs) {
    const Seconds simulated = step_with(scenario, {});
    all.text += fmt::format("{}: measured {}, simulated {}: {}\n", name, human(measured),
                            human(simulated), standing_text(measured, simulated, scenario.band));
    all.outside = all.outside || outside_band(measured, simulated, scenario.band) != 0;
  }
  return all;
}

int anchor(const AnchorOptions& options, const CommandLine& line) {
  const auto runs = read_runs(options, line);
  check_writable({options.output}, line);
  const Standings standings = standings_of(runs);
  const bool adopts = options.accept || !standings.outside;
  (adopts && options.output != "-" ? std::cout : std::cerr) << standings.text << std::flush;
  if (!adopts) {
    throw InfeasibleError(
        "a measurement lies outside its band: --accept adopts it all the same, once it is checked");
  }
  ProgressLine bar;
  bar.show(fmt::format("fitting to {} runs", runs.size()));
  const AnchorFit fit = fit_anchor(runs);
  bar.clear();
  write_outputs({{options.output, line.of_option(options.output),
                  [&](std::ostream& out) { out << anchor_yaml(runs, fit); }}});
  if (options.output != "-") std::cout << anchor_table(runs, fit) << std::flush;
  return kDone;
}

}  // namespace

Subcommand add_anchor(Parser& program) {
  auto options = std::make_shared<AnchorOptions>();
  Parser& parser = program.add_command(
      "anchor", "Find from measured steps what simulated ones are off by",
      "  pipesim anchor scenarios/llama3-70b-h100.yaml schedule=1f1b --measured '19.9 s' -o "
      "anchor.yaml\n"
      "  pipesim anchor scenarios/llama3-70b-h100.yaml schedule=zb-v --measured '24.5 s'");
  parser.add_option("scenarios", options->arguments,
                    "Scenarios of one schedule each; path.to.key=value changes them all");
  parser
      .add_option("--measured", options->measured,
                  "Time of a step, as '19.9 s', for each scenario in turn")
      .one_each();
  parser.add_option("--log", options->logs, "A Megatron-LM log instead, for each scenario in turn")
      .one_each();
  parser.add_option("--runs", options->runs,
                    "A file of runs instead: runs: [{scenario, set, measured or log}]");
  parser.add_flag("--accept", options->accept,
                  "Adopt a measurement that lies outside the band of runs like it");
  add_output(parser, options->output, "File for cost.anchor of a scenario ('-': standard output)");
  return {&parser, [options](const CommandLine& line) { return anchor(*options, line); }};
}

}  // namespace pipesim
