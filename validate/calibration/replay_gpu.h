// GPUs that rows are replayed on: real kernels, copies, messages and memory. Only where CUDA is
// built in.
#pragma once

#include <memory>
#include <string>

#include "validate/calibration/replay_pipeline.h"
#include "validate/calibration/shapes.h"

namespace pipesim::calibration {

// Why there are not so many GPUs to replay on, and several a way to send; empty when there are.
[[nodiscard]] std::string why_no_gpus(int number);

// The first GPU, which runs passes of layers of that slice. Requires that there is one. Besides
// the row's blocks it holds one layer, and one output layer where a stage has it. Errors, here and
// in replays: std::runtime_error of CUDA and its libraries; after one the device is of no use.
[[nodiscard]] std::unique_ptr<ReplayDevice> make_gpu_device(const LayerSlice& slice);

// A GPU for every device of a pipeline. InfeasibleError where why_no_gpus has a reason.
[[nodiscard]] std::unique_ptr<ReplayPipeline> make_gpu_pipeline(const LayerSlice& slice,
                                                                int devices);

}  // namespace pipesim::calibration
