// The contention-free engine without a graph: what each device comes to in one run of a program
// that is run once.
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

// To the last bit what the graph of build_task_graph comes to: the times of `replay_lanes`, the
// peaks of `peaks_in_order`. LogicError for several iterations and for copies to the host, whose
// memory depends on when passes run; InfeasibleError as build_task_graph, but for the number of
// edges. O(tasks); 8 bytes for each virtual stage and unit in each direction.
ProgramRun replay_program(const std::shared_ptr<const Program>& program, const Problem& problem,
                          const std::vector<std::vector<int>>& ranks, const BuildOptions& options);

}  // namespace pipesim
