// Device memory that streams acquire and release in their order, from a pool of its own.
//
// The pool keeps memory that it got from the GPU, so that a row that ran once finds it again. A
// block that another stream released is reused where an event orders the two, or the release is
// known to be over; the pool never makes one stream wait for another. Errors: CudaError,
// OutOfMemory.
#pragma once

#include <cstddef>
#include <memory>

#include "validate/calibration/harness/cuda_resource.h"

namespace pipesim::calibration {

class BlockPool {
 public:
  BlockPool();  // of the device that is current

  [[nodiscard]] void* acquire(std::size_t bytes, const Stream& stream);
  // After everything else that uses the block, in the stream's order.
  void release(void* block, const Stream& stream);

  // The most bytes that were given out at once since `restart_peak`, as the host asked for them.
  void restart_peak();
  [[nodiscard]] double peak_bytes() const;

 private:
  struct Destroy {
    void operator()(cudaMemPool_t pool) const { cudaMemPoolDestroy(pool); }
  };
  std::unique_ptr<CUmemPoolHandle_st, Destroy> pool_;
};

}  // namespace pipesim::calibration
