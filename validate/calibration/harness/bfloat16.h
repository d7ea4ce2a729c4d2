// A bf16 number and a pack of eight, for host and device alike.
//
// Conversion rounds to nearest, ties to even; NaN stays NaN. A pack is 16 bytes: what one thread
// loads or stores at once.
#pragma once

#include <bit>
#include <cstdint>

#ifdef __CUDACC__
#define PIPESIM_HD __host__ __device__
#else
#define PIPESIM_HD
#endif

namespace pipesim::calibration {

PIPESIM_HD inline float float_of_bits(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

PIPESIM_HD inline uint32_t bits_of_float(float value) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(value);
#else
  return std::bit_cast<uint32_t>(value);
#endif
}

struct Bfloat16 {
  uint16_t bits;

  PIPESIM_HD static Bfloat16 of(float value) {
    const uint32_t raw = bits_of_float(value);
    if ((raw & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((raw >> 16) | 0x40u)};
    return {static_cast<uint16_t>((raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16)};
  }
  PIPESIM_HD float value() const { return float_of_bits(static_cast<uint32_t>(bits) << 16); }
};

inline constexpr int kPack = 8;

struct alignas(16) Pack {
  Bfloat16 item[kPack];
};

}  // namespace pipesim::calibration
