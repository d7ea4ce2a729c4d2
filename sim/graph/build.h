// From programs to the task graph that an engine executes.
#pragma once

#include <memory>
#include <vector>

#include "sim/graph/build_options.h"
#include "sim/graph/task_graph.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// The graph of `ranks.size()` identical pipelines; `ranks[i][d]` is the place in the cluster of
// device d of pipeline i. O(tasks). Throws InfeasibleError naming the passes when the program has a
// cycle or blocking transfers hold devices for good. Throws it also for blocking transfers with a
// sharded vocabulary or with copies to the host, and for more than 2^32 edges.
TaskGraph build_task_graph(const std::shared_ptr<const Program>& program, const Problem& problem,
                           const std::vector<std::vector<int>>& ranks, const BuildOptions& options);

// One pipeline on ranks 0..p-1.
TaskGraph build_task_graph(const std::shared_ptr<const Program>& program, const Problem& problem,
                           const BuildOptions& options = {});

}  // namespace pipesim
