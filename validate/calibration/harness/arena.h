// Device memory that measurements borrow: random operands to read, and scratch to write.
//
// Operands hold normal random numbers (as bf16, as fp8 or as fp32), since a card draws less power,
// and so clocks higher, on zeros. `Rotation` hands out the offsets of successive launches so that
// none finds its data in the L2 cache. Sizes are bytes. Errors: OutOfMemory when memory is short or
// a request exceeds the arena.
#pragma once

#include <cstddef>
#include <cstdint>

#include "validate/calibration/harness/bfloat16.h"
#include "validate/calibration/harness/cuda_resource.h"

namespace pipesim::calibration {

enum class Filling { kBf16, kFp8, kFp32 };

class Arena {
 public:
  Arena(std::size_t bytes, Filling filling, uint64_t seed);

  [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }
  template <class T>
  [[nodiscard]] T* at(std::size_t offset) const {
    return memory_.at<T>(offset);
  }

 private:
  DeviceBuffer memory_;
};

// Offsets of equal regions of an arena, one per launch in turn, each aligned to 256 bytes.
class Rotation {
 public:
  Rotation(std::size_t arena_bytes, std::size_t region_bytes, std::size_t l2_bytes);

  [[nodiscard]] std::size_t offset(int launch) const {
    return static_cast<std::size_t>(launch) % regions_ * stride_;
  }
  [[nodiscard]] std::size_t regions() const { return regions_; }

 private:
  std::size_t stride_;
  std::size_t regions_;
};

}  // namespace pipesim::calibration
