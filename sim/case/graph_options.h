// The options of a case's task graph, beside its program and problem.
#pragma once

#include <vector>

#include "sim/case/case.h"
#include "sim/graph/build.h"

namespace pipesim {

// The options refer to the case. O(devices).
BuildOptions graph_options(const Case& made, int iterations);

// Ranks of the devices of every pipeline that is simulated.
std::vector<std::vector<int>> ranks_of(const Scenario& scenario);

}  // namespace pipesim
