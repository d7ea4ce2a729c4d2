// Rows of a plan as the simplest of the layouts that take as long.
//
// Layouts that differ in chunks and splits alone, by less than a measurement tells apart, are one
// row. It stands for the fewest chunks of them, and of these for the plainest split.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sim/layouts/outcome.h"

namespace pipesim {

// Layouts whose times differ by less than this factor take as long. Steps of a submitted run spread
// by 1.1% (step_s_p10 to step_s_p90 of runs.yaml, median of 16 runs).
inline constexpr double kAlike = 1.01;

// Returns the run of the first of these points that takes as long as a row, and serves it.
using FindAlike =
    std::function<std::optional<Planned>(const Planned& row, const std::vector<size_t>& points)>;

// Replaces a row by its simplest form: the fewest chunks of the numbers next to each other that
// take as long. Sets `most_chunks_alike`. `points` are those of plan_space, some left out.
void simplify(Planned& row, const std::vector<PlanPoint>& points, const FindAlike& find_alike);

// Makes rows of one layout one row, which stands for the ideas of all.
void merge_rows(std::vector<Planned>& rows);

}  // namespace pipesim
