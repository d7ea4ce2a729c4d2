// The band of a scenario's seconds, from the measured runs of the catalogue.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/band/band.h"
#include "sim/band/difference.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// The band by residuals.csv, or by anchored_residuals.csv where the scenario has an anchor of its
// own model and precision. Its framework is the one that the scenario names, else the one that most
// measured runs of its software have. Empty where costs are given, where no run is of its kind, and
// where the catalogue has no such file. A traced model has a band with an anchor alone: each of its
// operations is a kernel, and those of measured runs are fused.
std::optional<Band> read_band(const Scenario& scenario);

// How far off differences between schedules of the scenario may be: of the catalogue's
// schedule_runs.csv. Empty where costs are given, and where the catalogue has no such file.
std::optional<DifferenceBand> read_difference_band(const Scenario& scenario);

// The catalogue's schedule_runs.csv; empty where there is no such file.
std::vector<ScheduleRun> catalogue_schedule_runs();

// The residuals in the catalogue's residuals.csv, or anchored_residuals.csv; none without such a
// file.
std::vector<Residual> catalogue_residuals(bool anchored);

// Gbit/s between nodes that a GPU has, as Residual::network has it. Requires hardware.
double network_of(const Scenario& scenario);

// The frameworks of these, by name.
std::vector<std::string> measured_frameworks();

}  // namespace pipesim
