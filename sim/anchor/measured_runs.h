// Reads what was measured: scenarios, each with the seconds of a step or a training log.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/anchor/fit.h"
#include "sim/read/yaml.h"

namespace pipesim {

// A quantity such as "19.78 s", or a training log, of which one is given.
struct MeasuredText {
  std::optional<std::string> seconds = {};
  std::optional<std::string> log = {};  // a file
  Location where = {};
};

// InputError for a scenario that names several schedules, whose costs are given, or that has an
// anchor.
void check_measurable(const Scenario& scenario, const Location& where);

// InputError as check_measurable, and for a measurement that is none.
MeasuredStep read_measured_run(const std::string& scenario, const Location& where,
                               std::vector<Override> overrides, const MeasuredText& measured);

// Reads a file
//     runs:
//       - {scenario: FILE, set: {batch.num_microbatches: 64}, measured: 19.78 s}
//       - {scenario: FILE, log: FILE}
// with files relative to its folder or, when they are not there, to the current one. `set` replaces
// keys of the scenario, over `overrides`. InputError for a file without runs.
std::vector<MeasuredStep> read_measured_runs(const std::string& file, const Location& where,
                                             const std::vector<Override>& overrides);

}  // namespace pipesim
