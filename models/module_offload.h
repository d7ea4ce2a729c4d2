// How long passes last where modules' inputs wait on the host (LayerContext::offloaded).
//
// A layer's tensors leave while the layers behind it run, and come back while those before it run
// backward. Megatron-Core asks for the first ones before the stage's backward begins
// (megatron/core/pipeline_parallel/fine_grained_activation_offload.py). So a pass waits where its
// copies take longer than itself. F lasts at least as long as its copies out, B as its copies back;
// a pass of B and W counts as B. A block of both lasts as long as the longer. All GPUs copy at a
// time, both ways: each has its share of a switch's link each way. Pure functions.
#pragma once

#include "models/hardware.h"
#include "models/layer_cost.h"
#include "sim/pipeline/problem.h"

namespace pipesim {

// Seconds of either way, for a microbatch's bytes.
Seconds copy_seconds(Bytes offloaded, const Hardware& hardware);

// Lengthens F, B, W and FB of the stage.
void wait_for_copies(Seconds copy, const CostSetting& setting, StageCost& stage);

}  // namespace pipesim
