// A small sweep.
#pragma once

#include <string>

namespace pipesim::testing {

// 2 x 3 settings, two schedules; interleaving refuses 3 microbatches on 2 devices.
inline const std::string kSmallSweep =
    R"(schedule: [1f1b, {name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 2}]
parallel: {pipeline_model_parallel_size: 2}
batch: {num_microbatches: 4, micro_batch_size: 1}
cost: {kind: given, forward: 10 ms, backward_input: 10 ms, backward_weight: 10 ms}
sweep:
  grid:
    cost.forward: [10 ms, 12.5 ms]
    batch.num_microbatches: [2, 3, 4]
)";

}  // namespace pipesim::testing
