// The chain of tasks that decides when the last one ends.
#pragma once

#include <vector>

#include "sim/graph/task_graph.h"
#include "sim/graph/timeline.h"

namespace pipesim {

// From a task that waits for nothing to the one that ends last (ties: the lowest id). Each is the
// one that the next waited for longest. O(length x edges per task).
std::vector<TaskId> critical_path(const TaskGraph& graph, const Timeline& timeline);

}  // namespace pipesim
