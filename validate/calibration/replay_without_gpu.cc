// Stands in for harness/replay_gpu.cc where CUDA is not built in.
#include "sim/core/error.h"
#include "validate/calibration/replay_gpu.h"

namespace pipesim::calibration {

std::string why_no_gpus(int /*number*/) {
  return "built without CUDA (nvcc with cuBLASLt; cmake -DPIPESIM_CUDA=ON says what is missing)";
}

std::unique_ptr<ReplayDevice> make_gpu_device(const LayerSlice& /*slice*/) {
  throw InfeasibleError(why_no_gpus(1));
}

std::unique_ptr<ReplayPipeline> make_gpu_pipeline(const LayerSlice& /*slice*/, int devices) {
  throw InfeasibleError(why_no_gpus(devices));
}

}  // namespace pipesim::calibration
