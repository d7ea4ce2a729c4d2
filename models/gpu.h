// A GPU's rates, and the time of one kernel on it.
//
// The forms are closed, with few constants per GPU. The constants come from the catalogue
// (models/catalog/gpus.yaml), each with its source; validate/calibration fits those of matmuls to
// measured curves. docs/reference/model.md ("Hardware") states every formula.
//
// All times are of one kernel alone on the GPU, launch included. Nothing allocates; a matmul takes
// well under a microsecond to time. LogicError when the GPU has no such precision.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "models/work.h"
#include "sim/core/enum_array.h"
#include "sim/core/units.h"

namespace pipesim {

// A matmul runs in waves of tiles over the multiprocessors. The library takes the fastest tile and
// split of the summed dimension k.
struct MatmulCurve {
  // Share of the peak that 128 x 256 tiles reach in full waves at endless k.
  EnumArray<Precision, double> efficiency{1, 1, 1, 1};
  double memory_efficiency = 1;  // share of the memory bandwidth that operands stream at
  double fill = 0;               // elements of k (of 2 bytes) that filling a tile's pipeline costs
  double edge = 0;               // elements of a tile's side: small tiles feed the cores worse
  double split = 0;              // elements of k that each part of a split k costs more
  double tail = 1;               // share of the idle part of the last wave that is lost
  // Long kernels run into the power limit: rate / (1 + slowdown ln(1 + flops / slowdown_flops)).
  double slowdown = 0;
  Flops slowdown_flops{1e11};
};

// seconds = launch + flops (1 + head_ramp / head size) (1 + tail x 128 x multiprocessors / rows)
//                    / (efficiency x peak)
//         + bytes moved / (streaming x memory bandwidth)
struct AttentionCurve {
  double efficiency = 1;  // of the bf16 peak, for endless heads and sequences
  double head_ramp = 0;   // softmax costs as much as this many elements of the head
  double streaming = 1;   // of the memory bandwidth
  // Blocks of 128 rows that each multiprocessor waits for beside its own. Rows of a causal mask are
  // of unlike length: at the end most wait for the longest.
  double tail = 0;
};

// Generations of attention. Unfused, its matmuls and its softmax are kernels of their own.
enum class AttentionKernel : std::uint8_t { kUnfused, kFlash1, kFlash2, kFlash3, kCudnn, kSdpa };
template <>
inline constexpr std::size_t kSizeOf<AttentionKernel> = 6;
inline constexpr std::array<const char*, 6> kAttentionKernels{"unfused", "flash-1", "flash-2",
                                                              "flash-3", "cudnn",   "sdpa"};

// Shares of their speed alone that kernels keep in training, where the power limit holds and
// collectives run beside them. 1: as alone.
struct Sustained {
  EnumArray<Precision, double> matmul{1, 1, 1, 1};
  double attention = 1;
  double streaming = 1;
  double unaligned = 1;  // of a matmul whose operands' rows begin at no multiple of 16 bytes
};

constexpr EnumArray<AttentionKernel, std::array<double, 2>> all_at_their_curves() {
  EnumArray<AttentionKernel, std::array<double, 2>> shares{};
  shares.fill({1, 1});
  return shares;
}

struct Gpu {
  std::string name;
  EnumArray<Precision, FlopsPerSecond> peak;  // dense; 0: the GPU has no such precision
  bool has_bf16 = true;                       // false: what stands at kBf16 is fp16's
  Bytes memory;
  BytesPerSecond memory_bandwidth{1};
  int multiprocessors = 1;
  Seconds launch;  // start and end of a kernel
  MatmulCurve matmul;
  std::array<AttentionCurve, 2> attention;  // forward, backward
  // Each generation's share of those curves' rates, likewise; 0: the GPU does not run it.
  EnumArray<AttentionKernel, std::array<double, 2>> attention_kernels = all_at_their_curves();
  // Its fp8 matmuls take operands in one layout only, so that weights are kept transposed too.
  bool fp8_transposes = false;
  double streaming = 1;  // share of the memory bandwidth that a long memory-bound kernel reaches
  Sustained sustained;   // models/layer_cost.h divides by these; the functions below do not
  Watts idle_power;
  Watts busy_power;
  // For a GPU known from its data sheet: the GPU whose curves it has, and the share by which
  // seconds may be off beside theirs.
  std::string like;
  double spread = 0;

  [[nodiscard]] bool has(Precision precision) const { return peak[precision] > FlopsPerSecond(0); }
};

Seconds matmul_seconds(const Gpu& gpu, const Matmul& matmul);
Seconds attention_seconds(const Gpu& gpu, const Attention& attention);
// `kernels` kernels that together read and write `moved` bytes.
Seconds memory_bound_seconds(const Gpu& gpu, Bytes moved, int kernels);

}  // namespace pipesim
