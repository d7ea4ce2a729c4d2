#include "validate/calibration/replay_gpu.h"

#include <fmt/format.h>

#include "sim/core/error.h"
#include "validate/calibration/harness/gpu_device.h"
#include "validate/calibration/harness/gpu_pipeline.h"

namespace pipesim::calibration {

std::string why_no_gpus(int number) {
  if (const std::string reason = why_no_device(); !reason.empty()) return reason;
  if (number == 1) return "";
  int there = 0;
  check_cuda(cudaGetDeviceCount(&there), "cudaGetDeviceCount");
  if (there < number) {
    return fmt::format("a pipeline of {} devices needs as many GPUs, and there are {}", number,
                       there);
  }
#ifdef PIPESIM_NCCL
  return "";
#else
  return "built without NCCL, over which GPUs send";
#endif
}

std::unique_ptr<ReplayDevice> make_gpu_device(const LayerSlice& slice) {
  return std::make_unique<GpuDevice>(slice, 0);
}

std::unique_ptr<ReplayPipeline> make_gpu_pipeline([[maybe_unused]] const LayerSlice& slice,
                                                  int devices) {
  if (const std::string reason = why_no_gpus(devices); !reason.empty()) {
    throw InfeasibleError(reason);
  }
#ifdef PIPESIM_NCCL
  return std::make_unique<GpuPipeline>(slice, devices);
#else
  return nullptr;
#endif
}

}  // namespace pipesim::calibration
