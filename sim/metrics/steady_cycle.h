// The cycle that iterations which run into each other settle into.
#pragma once

#include <optional>

#include "sim/graph/task_graph.h"
#include "sim/graph/timeline.h"

namespace pipesim {

// The fewest iterations after which, from the middle one on, every pass starts as much later as
// every other, to `relative`. Passes of at least as many microbatches as devices are compared. No
// later one depends on those before them: a result for these holds from there on. Nothing where
// the run is too short to show it. Requires a graph that streams. O(tasks), times the cycle at
// worst.
std::optional<int> steady_cycle(const TaskGraph& graph, const Timeline& timeline, double relative);

// The fewest iterations in whose second half a cycle of one can be seen.
int fewest_streamed(int devices, int microbatches);

}  // namespace pipesim
