// A generation of a training framework: what it adds to the kernels that models/layer_work.h lists.
//
// A value of models/catalog/software.yaml, which has the source of every number
// (docs/reference/model.md, "Frameworks"). The default is that of one that adds nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "models/gpu.h"
#include "models/memory_fit.h"
#include "sim/core/enum_array.h"
#include "sim/core/units.h"

namespace pipesim {

// How operations reach the GPU: one by one from Python, from compiled code, or as recorded graphs.
enum class LaunchMode : std::uint8_t { kEager, kCompiled, kCudaGraphs };
template <>
inline constexpr std::size_t kSizeOf<LaunchMode> = 3;
inline constexpr std::array<const char*, 3> kLaunchModes{"eager", "compiled", "cuda_graphs"};

struct Software {
  std::string name;
  LaunchMode launch = LaunchMode::kEager;
  // Seconds of the host for every kernel and collective of layer_work.h that a pass launches. A
  // pass lasts no less than their sum.
  EnumArray<LaunchMode, Seconds> operation{};
  // Bytes that memory-bound kernels move, to those of kernels that are fused as layer_work.h has
  // it; compiled code fuses what lone operations do not.
  EnumArray<LaunchMode, double> traffic{1, 1, 1};
  // Between the end of a kernel and the start of the next, beyond a launch.
  Seconds gap = {};
  // Bytes a weight that adding to gradients moves, beside what matmuls that add in fp32 move.
  double gradient = 0;
  // Parameters of a bucket of gradients that is reduced by itself; 0: Megatron-Core's, 40 million
  // or a million a data rank.
  double bucket = 0;
  // Seconds, beside its bytes, for the broadcast of each data rank's part of the parameters after
  // the step. 0: all parts are gathered at once.
  Seconds broadcast = {};
  // R ends with the last tensor that B reads, before the matmul that ends an MLP.
  bool early_stop = false;
  AttentionKernel attention = AttentionKernel::kCudnn;
  // For a vocabulary that all devices divide: the share of its rate that a pass of layers keeps
  // beside the collectives. These wait for the last device on multiprocessors of their own.
  double beside_vocabulary = 1;
  // Seconds of IF and of IB for every token of the microbatch, on any device.
  std::array<Seconds, 2> vocabulary_token{};
  // For layers with experts.
  double permuting = 1;  // bytes that sorting tokens moves, to those that layer_work.h has
  double biases = 1;     // likewise by adding biases to what experts made
  double grouped = 1;    // share of a matmul's rate that grouped ones keep
  double fullest = 1;    // tokens of the fullest GPU, to those of all on average
  double exchange = 1;   // share of an all-to-all's rate that tokens are exchanged at
  Seconds routing = {};  // that the host holds a GPU for when it learns what goes where
  // The host's, beside `operation`, for every expert of a grouped matmul whose operands it
  // quantizes; recorded graphs have none.
  Seconds quantizing = {};
  // GPU memory beyond allocated bytes: the allocator reserves more than it hands out, and NCCL has
  // buffers.
  Bytes memory_margin = {};
  MemoryBand memory_band = {};  // of peaks
  // Bytes of a logit that a loss holds at its peak: kernel by kernel, and fused.
  std::array<double, 2> loss_bytes{10, 10};
  double gradient_copy = 0;     // bytes of 16-bit gradients that stay beside those in fp32
  bool keeps_gathered = false;  // LayerContext::keeps_gathered
};

}  // namespace pipesim
