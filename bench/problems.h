// The problem that the benchmarks plan and run: the Zero Bubble paper's 1.5B model on 8 devices
// (Table 9) at any shape.
#pragma once

#include "sim/pipeline/problem.h"
#include "sim/planning/schedule.h"

namespace pipesim::bench {

inline Problem problem_of(const Schedule& schedule, int devices, int microbatches, int chunks) {
  Problem problem;
  problem.shape = {devices, chunks, microbatches, schedule.default_splits};
  problem.placement = schedule.place(devices, chunks);
  StageCost cost;
  cost.forward = Seconds(18.522e-3) / chunks;
  cost.backward_input = Seconds(18.086e-3) / chunks;
  cost.backward_weight = Seconds(9.337e-3) / chunks;
  cost.overlapped = Seconds(40e-3) / chunks;
  cost.transfer = Seconds(0.601e-3);
  cost.activation = Bytes(3.7e9) / chunks;
  cost.weight_stash = Bytes(1.6e9) / chunks;
  problem.stages.assign(problem.placement.virtual_stages(), cost);
  for (int vs = 0; vs < problem.placement.virtual_stages(); ++vs) {
    const int down = problem.placement.downstream(vs);
    const bool leaves = down >= 0 && problem.placement.device(vs) != problem.placement.device(down);
    if (!leaves) problem.stages[vs].transfer = Seconds(0);
  }
  return problem;
}

inline Problem problem_of(const Schedule& schedule, int devices, int microbatches) {
  return problem_of(schedule, devices, microbatches, schedule.default_chunks);
}

}  // namespace pipesim::bench
