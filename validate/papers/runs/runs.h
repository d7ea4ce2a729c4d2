// Measured training runs against the simulator: every row of runs.yaml becomes a scenario by the
// rule of its table (rules.yaml), which is simulated as `pipesim run` would, or says why not.
//
// No rule and no constant reads a row's id or its measurements; rows run in parallel and stand in
// the file's order, so that nothing depends on the number of threads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "validate/papers/cell.h"

namespace pipesim {

// One measured figure of a run, in seconds of a step or bytes of a GPU.
struct TrainingRun {
  std::string table;
  std::string id;
  std::string quantity;   // seconds or bytes
  std::string gpu;        // of the catalogue, where it has it
  std::string precision;  // bf16, fp8, mxfp8, nvfp4
  std::string kind;       // dense or moe
  std::string framework;
  int year = 0;
  std::string model;     // as the row calls it, or its layers and hidden size
  std::string shape;     // as Residual::model; empty where nothing is simulated
  std::string release;   // the framework's version, as its rule tells them apart
  std::string software;  // the generation of the software catalogue that it is simulated as
  int gpus = 0;
  double network = 0;   // as Residual::network
  bool anchor = false;  // others are simulated by it
  double published = 0;
  std::optional<double> simulated;
  // The error of runs near this one: an interval that should hold the published value.
  std::optional<double> low;
  std::optional<double> high;
  std::string reason;    // why nothing is simulated
  std::string scenario;  // YAML; empty where there is none

  // GPU, precision, kind, framework and year.
  [[nodiscard]] std::string group() const;
  [[nodiscard]] std::optional<double> relative_error() const;
};

struct TrainingRuns {
  std::vector<TrainingRun> runs;
  int fitted = 0;                   // numbers of the catalogue that are fitted to measured runs
  std::vector<std::string> unread;  // "key (rows)": keys of rows that no rule knows
};

// `folder`: with runs.yaml, and with rules.yaml unless the project's own are to be taken.
// InputError where the file is no table of runs; nothing is thrown because of a row.
TrainingRuns compare_measured_runs(const std::string& folder, const Location& asked);

// The validation `runs`: a table for each group.
std::vector<Cell> compare_runs(const std::string& folder, const Location& asked);

// For people: a line for each group, then those that are not simulated, by reason.
std::string runs_text(const TrainingRuns& all);
// Every figure on its own line.
std::string runs_rows(const TrainingRuns& all);
// A list of {table, cell, quantity, gpu, precision, kind, published, simulated, low, high,
// relative_error, status, reason, group}; status is `simulated`, `anchor` or `not modelled`.
std::string runs_json(const TrainingRuns& all);
// The simulated figures in seconds: id, group, model, gpu, precision, kind, framework,
// year, software, gpus, network, published_seconds, simulated_seconds.
std::string residuals_csv(const TrainingRuns& all);
// SVG: the errors of every group on a line of its own.
std::string runs_drawing(const TrainingRuns& all);
// Each row's scenario, by a name that is a file's.
std::vector<std::pair<std::string, std::string>> runs_scenarios(const TrainingRuns& all);

}  // namespace pipesim
