#include "validate/calibration/harness/cuda_resource.h"

namespace pipesim::calibration {

void check_cuda(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  const std::string message =
      std::string(what) + ": " + cudaGetErrorName(status) + " (" + cudaGetErrorString(status) + ")";
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // not sticky: the next call must not report it again
    throw OutOfMemory(message);
  }
  throw CudaError(message);
}

std::string why_no_device() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    return std::string("no CUDA device can be used: ") + cudaGetErrorString(status);
  }
  return count > 0 ? std::string() : std::string("the CUDA driver reports no device");
}

template <>
Buffer<FreeDevice>::Buffer(std::size_t bytes) : bytes_(bytes) {
  void* raw = nullptr;
  check_cuda(cudaMalloc(&raw, bytes), "cudaMalloc of " + std::to_string(bytes) + " bytes");
  memory_.reset(raw);
}

template <>
Buffer<FreePinned>::Buffer(std::size_t bytes) : bytes_(bytes) {
  void* raw = nullptr;
  check_cuda(cudaMallocHost(&raw, bytes), "cudaMallocHost of " + std::to_string(bytes) + " bytes");
  memory_.reset(raw);
}

Stream::Stream() {
  cudaStream_t raw = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&raw, cudaStreamNonBlocking), "cudaStreamCreate");
  stream_.reset(raw);
}

void Stream::synchronize() const {
  check_cuda(cudaStreamSynchronize(get()), "cudaStreamSynchronize");
}

Event::Event() {
  cudaEvent_t raw = nullptr;
  check_cuda(cudaEventCreate(&raw), "cudaEventCreate");
  event_.reset(raw);
}

void Event::record(const Stream& stream) const {
  check_cuda(cudaEventRecord(get(), stream.get()), "cudaEventRecord");
}

void Event::synchronize() const { check_cuda(cudaEventSynchronize(get()), "cudaEventSynchronize"); }

double Event::microseconds_since(const Event& earlier) const {
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, earlier.get(), get()), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e3;
}

}  // namespace pipesim::calibration
