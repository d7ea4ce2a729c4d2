#include "validate/calibration/harness/arena.h"

#include <algorithm>
#include <string>

#include "validate/calibration/harness/kernels.h"

namespace pipesim::calibration {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kCachesCovered = 4;  // regions together exceed the L2 cache this often

}  // namespace

Arena::Arena(std::size_t bytes, Filling filling, uint64_t seed) : memory_(bytes) {
  switch (filling) {
    case Filling::kBf16:
      kernels::fill_normal(memory_.at<Bfloat16>(), static_cast<int64_t>(bytes / sizeof(Bfloat16)),
                           seed, 1.0F, nullptr);
      break;
    case Filling::kFp8:
      kernels::fill_normal_fp8(memory_.at<uint8_t>(), static_cast<int64_t>(bytes), seed, nullptr);
      break;
    case Filling::kFp32:
      kernels::fill_normal(memory_.at<float>(), static_cast<int64_t>(bytes / sizeof(float)), seed,
                           1.0F, nullptr);
      break;
  }
  check_cuda(cudaStreamSynchronize(nullptr), "filling an arena");
}

Rotation::Rotation(std::size_t arena_bytes, std::size_t region_bytes, std::size_t l2_bytes)
    : stride_((std::max<std::size_t>(region_bytes, 1) + kAlignment - 1) / kAlignment * kAlignment) {
  if (stride_ > arena_bytes) {
    throw OutOfMemory("a region of " + std::to_string(region_bytes) +
                      " bytes exceeds the arena of " + std::to_string(arena_bytes));
  }
  const std::size_t wanted = kCachesCovered * l2_bytes / stride_ + 2;
  regions_ = std::min(wanted, arena_bytes / stride_);
}

}  // namespace pipesim::calibration
