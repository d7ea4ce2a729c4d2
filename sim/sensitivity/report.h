// A sensitivity analysis for people and programs: a table per schedule, one CSV, one JSON document.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "sim/sensitivity/sensitivity.h"

namespace pipesim {

// The base scenario in a line, then a row per value and factor with the relative changes (bubble in
// percentage points). Values that do not apply follow, with the reason.
std::string sensitivity_table(const Sensitivity& sensitivity);

// All schedules, a row per value and factor; units in the names of columns, cells empty where
// nothing applies. The scenario as it is has `what` "scenario" and factor 1.
std::string sensitivity_csv(std::span<const Sensitivity> all);

// {"pipesim": {"version"}, "sensitivity": [{"schedule", "base", "effects", "not_applicable"}]}; the
// same bytes for the same input. An unknown number is null.
void write_sensitivity_json(std::ostream& out, std::span<const Sensitivity> all,
                            const std::string& version);

}  // namespace pipesim
