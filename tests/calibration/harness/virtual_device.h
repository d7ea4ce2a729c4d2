// A CUDA device that only keeps time: for tests of a whole calibration on a machine without a GPU.
//
// virtual_runtime.cc, virtual_blas.cc, virtual_nccl.cc and virtual_kernels.cc define the functions
// of the CUDA runtime, of cuBLASLt, of NCCL and of our kernels that the harness calls. Each piece
// of work advances its stream's clock by a simple formula, and computes nothing. It is refused
// (VirtualDeviceError) when it reaches outside an allocation, is misaligned, names matrices that do
// not fit together, or is for a stream of another device than the current one. virtual_nodes.cc is
// the NCCL of several processes.
#pragma once

#include <cstddef>
#include <cuda_runtime_api.h>
#include <stdexcept>
#include <string>

namespace pipesim::calibration::virtual_device {

class VirtualDeviceError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline constexpr double kLaunchUs = 2;            // of every kernel, on the device
inline constexpr double kMemoryBytesPerUs = 3e6;  // 3 TB/s
inline constexpr double kMatmulFlopsPerUs = 7e8;  // 700 TFLOP/s in bf16, twice that in fp8
inline constexpr double kCopyBytesPerUs = 5e4;    // 50 GB/s
inline constexpr double kEmptyKernelUs = 1.5;
inline constexpr double kMessageUs = 10;        // of NCCL, whatever its size
inline constexpr double kLinkBytesPerUs = 1e5;  // 100 GB/s

struct State {
  int devices = 1;
  int current = 0;
  std::size_t memory_bytes = std::size_t{80} << 30;
  std::size_t used_bytes = 0;
  std::size_t peak_bytes = 0;
  std::size_t allocations = 0;  // that live now
  double host_us = 0;           // virtual time of the host
  bool capturing = false;       // into a graph
  int captured = 0;
};

State& state();

[[noreturn]] void fail(const std::string& reason);
// Work of that long, enqueued by the host.
void advance(cudaStream_t stream, double duration_us);
// When the stream's last work ends.
double& time_of(cudaStream_t stream);
// That it was made on; the default stream is of the current device.
int device_of(cudaStream_t stream);
void require_region(const char* what, const void* pointer, std::size_t bytes);

}  // namespace pipesim::calibration::virtual_device
