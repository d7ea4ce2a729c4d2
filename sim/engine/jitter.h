// Timing noise as an input: the same seed gives the same durations on any machine.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/graph/task_graph.h"

namespace pipesim {

// Seconds of every task, those of compute passes multiplied by exp(sigma x - sigma^2 / 2), x
// standard normal and drawn in task order: log-normal with mean 1. Messages keep their size.
std::vector<double> jittered(const TaskGraph& graph, double sigma, std::uint64_t seed);

}  // namespace pipesim
