// A sweep evaluated in memory, for the few points that a figure has.
#pragma once

#include <vector>

#include "sim/sweep/point.h"
#include "sim/sweep/sweep.h"

namespace pipesim::reproduce {

// In the order of the sweep's points, by up to `processes` forked processes. InfeasibleError where
// a process ends before its points do, or a point meets a fault of this machine or of pipesim.
std::vector<PointResult> evaluated(const Sweep& sweep, int processes);

}  // namespace pipesim::reproduce
