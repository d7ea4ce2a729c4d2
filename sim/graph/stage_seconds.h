// How long a microbatch takes on each stage of a task graph.
#pragma once

#include <vector>

#include "sim/graph/task_graph.h"

namespace pipesim {

// Seconds of all passes of one microbatch (the mean of those that differ), with the stragglers that
// the graph knows of. By device and chunk: number `device * Shape::chunks + chunk`. O(classes).
std::vector<double> stage_seconds(const TaskGraph& graph);

}  // namespace pipesim
