// Matmuls and attention as single kernels: their shapes, and the work in them. Pure values.
#pragma once

#include <cstdint>
#include <limits>

#include "sim/core/enum_array.h"
#include "sim/core/units.h"

namespace pipesim {

// kBf16 stands for 16 bits.
enum class Precision : std::uint8_t { kBf16, kFp8, kFp4, kFp32 };
template <>
inline constexpr std::size_t kSizeOf<Precision> = 4;
// Bytes of a number.
inline double size_of(Precision precision) {
  constexpr double kSizes[] = {2, 1, 0.5, 4};
  return kSizes[static_cast<std::size_t>(precision)];
}
// 8 and 4 bits: copies of numbers that are kept in 16.
inline bool is_quantized(Precision precision) {
  return precision == Precision::kFp8 || precision == Precision::kFp4;
}

// Bytes per weight that adding to its gradient moves. A matmul that adds in fp32 reads 4 and writes
// 4. A kernel of its own that adds 16 bits to 16 moves as much.
inline constexpr double kAddedGradient = 8;

// C (m x n) = A (m x k) B (k x n), `batch` of them in one kernel; 2 m n k flops each.
struct Matmul {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  Precision precision = Precision::kBf16;
  double result_bytes = 2;  // moved per result: more where it is added to what is there
  bool aligned = true;      // rows of its operands begin at multiples of 16 bytes
  const char* name = "";    // of the layer's part, for people
  bool grouped = false;     // of experts, whose rows differ
  [[nodiscard]] double results() const {
    return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(batch);
  }
  [[nodiscard]] bool adds() const { return result_bytes > 4; }
  [[nodiscard]] Flops flops() const {
    return Flops(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                 static_cast<double>(batch));
  }
};

// One fused attention kernel (scores, softmax, values), forward or backward, on this GPU's part.
// `flops` are those that run: half of full attention when causal.
struct Attention {
  Flops flops;
  Bytes moved;
  int head_size = 0;
  bool backward = false;
  // Queries over all heads and sequences, which a kernel's thread blocks divide. Infinite where
  // they divide something else.
  double rows = std::numeric_limits<double>::infinity();
  Precision precision = Precision::kBf16;  // 16 bits, or kFp32
};

}  // namespace pipesim
