// Bands of measured runs (sim/band), and whether they hold.
#pragma once

#include <string>
#include <vector>

#include "sim/band/residuals.h"
#include "validate/papers/runs/runs.h"

namespace pipesim {

// Residuals of the simulated figures in seconds, without anchors.
std::vector<Residual> residuals_of(const TrainingRuns& all);

// Their low and high: by the residuals of the catalogue, without its group for a run that is one of
// these; by the runs themselves where the catalogue has none.
void add_bands(TrainingRuns& all, const std::vector<Residual>& of_catalogue);

// For people, by group: how many rows lie in the band of the others, with the group left out as a
// whole and with each row left out alone; and the median half-width of both.
std::string coverage_text(const TrainingRuns& all);

}  // namespace pipesim
