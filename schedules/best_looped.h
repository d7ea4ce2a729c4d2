// The best of several interleaved orders within a limit on activation memory, for `best`.
//
// Orders of interleaved 1F1B and of GIS in groups of one to p are put into time within the limit
// (sim/planning/run_within.h): F wait for room, and each W runs where its device waits. The best is
// justified (sim/planning/justify.h). O(passes log p) for each order.
#pragma once

#include <memory>

#include "sim/pipeline/problem.h"
#include "sim/planning/planners.h"

namespace pipesim {

std::unique_ptr<LimitPlanner> plan_best_looped(const Problem& problem, OrderSource* source);

}  // namespace pipesim
