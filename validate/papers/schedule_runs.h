// Cells that are measured speeds of schedules: what bands of differences are learned from
// (sim/band/difference.h), and whether these hold.
#pragma once

#include <string>
#include <vector>

#include "sim/band/difference.h"
#include "validate/papers/validation.h"

namespace pipesim {

// The simulated cells that are such speeds, in their order; of a run that is printed twice the
// first.
std::vector<ScheduleRun> schedule_runs_of(const std::vector<Compared>& all);

// The file that sim/band/difference.h reads.
std::string schedule_runs_csv(const std::vector<ScheduleRun>& runs);

// For people: by model of a paper, how many pairs of schedules lie in the band that the other
// models of `known` give them; empty without a pair.
std::string schedule_coverage_text(const std::vector<ScheduleRun>& runs,
                                   const std::vector<ScheduleRun>& known);

}  // namespace pipesim
