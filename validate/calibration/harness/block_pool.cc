#include "validate/calibration/harness/block_pool.h"

#include <cstdint>
#include <limits>
#include <string>

namespace pipesim::calibration {

BlockPool::BlockPool() {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  check_cuda(cudaGetDevice(&properties.location.id), "cudaGetDevice");
  cudaMemPool_t raw = nullptr;
  check_cuda(cudaMemPoolCreate(&raw, &properties), "cudaMemPoolCreate");
  pool_.reset(raw);
  uint64_t kept = std::numeric_limits<uint64_t>::max();
  check_cuda(cudaMemPoolSetAttribute(raw, cudaMemPoolAttrReleaseThreshold, &kept),
             "cudaMemPoolSetAttribute");
  int never = 0;
  check_cuda(cudaMemPoolSetAttribute(raw, cudaMemPoolReuseAllowInternalDependencies, &never),
             "cudaMemPoolSetAttribute");
}

void* BlockPool::acquire(std::size_t bytes, const Stream& stream) {
  void* block = nullptr;
  check_cuda(cudaMallocFromPoolAsync(&block, bytes, pool_.get(), stream.get()),
             "cudaMallocFromPoolAsync of " + std::to_string(bytes) + " bytes");
  return block;
}

void BlockPool::release(void* block, const Stream& stream) {
  check_cuda(cudaFreeAsync(block, stream.get()), "cudaFreeAsync");
}

void BlockPool::restart_peak() {
  uint64_t zero = 0;  // the only value that it takes
  check_cuda(cudaMemPoolSetAttribute(pool_.get(), cudaMemPoolAttrUsedMemHigh, &zero),
             "cudaMemPoolSetAttribute");
}

double BlockPool::peak_bytes() const {
  uint64_t bytes = 0;
  check_cuda(cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrUsedMemHigh, &bytes),
             "cudaMemPoolGetAttribute");
  return static_cast<double>(bytes);
}

}  // namespace pipesim::calibration
