// Outputs of a recorded run: a file of measured passes, a scenario that names it, and a text for
// people.
#pragma once

#include <string>

#include "sim/interop/passes/measured_run.h"

namespace pipesim {

// pipesim-passes/1 (docs/reference/passes.md).
std::string passes_text(const RecordedRun& run, const RunMeasures& measured);

// `passes` and `order` are paths as the scenario has to name them, quoted for YAML. `order` is a
// schedule CSV, for a run whose order no registered schedule has.
std::string scenario_of_run(const RecordedRun& run, const RunMeasures& measured,
                            const std::string& passes, const std::string& order);

// Findings for every rank and stage, and the run beside its simulation.
std::string summary_of(const RecordedRun& run, const RunMeasures& measured);

}  // namespace pipesim
