// A GPU that rows are replayed on: real kernels, copies and memory. Only where CUDA is built in.
#pragma once

#include <memory>
#include <string>

#include "validate/calibration/replay_device.h"
#include "validate/calibration/shapes.h"

namespace pipesim::calibration {

// Why there is no GPU to replay on; empty when there is one.
[[nodiscard]] std::string why_no_gpu();

// The first GPU, which runs passes of layers of that slice. Requires that there is one. Besides
// the row's blocks it holds one layer, and one output layer where a stage has it. Errors, here and
// in replays: std::runtime_error of CUDA and its libraries; after one the device is of no use.
[[nodiscard]] std::unique_ptr<ReplayDevice> make_gpu_device(const LayerSlice& slice);

}  // namespace pipesim::calibration
