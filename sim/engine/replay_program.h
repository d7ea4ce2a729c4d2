// The contention-free engine without a graph: sums of each device in one run of a program.
#pragma once

#include <memory>
#include <vector>

#include "sim/core/units.h"
#include "sim/engine/device_sums.h"
#include "sim/graph/build_options.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

struct ProgramRun {
  RunTimes times;
  std::vector<Bytes> peaks;  // of activations, by device
  size_t tasks = 0;
};

// Gives to the last bit the times of `replay_lanes` and the peaks of `peaks_in_order` for the graph
// of build_task_graph. LogicError for several iterations and for copies to the host, whose memory
// depends on when passes run. InfeasibleError as build_task_graph, except for the number of edges.
// O(tasks); 8 bytes for each virtual stage and unit in each direction.
ProgramRun replay_program(const std::shared_ptr<const Program>& program, const Problem& problem,
                          const std::vector<std::vector<int>>& ranks, const BuildOptions& options);

}  // namespace pipesim
