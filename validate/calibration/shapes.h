// The shapes that a transformer's passes produce: matmuls, attention, memory-bound kernels, slices.
//
// A slice is one layer as one GPU of a tensor-parallel group sees it. A linear layer of `in` inputs
// and `out` outputs over `tokens` rows is three matmuls: fprop in F, dgrad in B, wgrad in W, each
// of 2 x tokens x in x out floating-point operations. Sizes count elements unless the name says
// bytes. Errors: std::invalid_argument for a slice that does not divide. Source of the shapes: the
// models of the experiments that the simulator is compared with (hidden sizes 2304 to 8192).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/kernel_work.h"

namespace pipesim::calibration {

enum class MatmulPass { kForward, kInputGradient, kWeightGradient };

[[nodiscard]] std::string_view name_of(Precision precision);
[[nodiscard]] std::string_view name_of(MatmulPass pass);

struct MatmulSpec {
  MatmulPass pass = MatmulPass::kForward;
  Precision precision = Precision::kBf16;
  int64_t tokens = 0, in = 0, out = 0;

  // The cost model's matmul: a weight gradient is read and written in fp32, since it adds up.
  [[nodiscard]] Matmul matmul() const;
  [[nodiscard]] double flops() const { return matmul().flops().value(); }
  // Both operands read once and the result written once.
  [[nodiscard]] double bytes() const;
  auto operator<=>(const MatmulSpec&) const = default;
};

struct AttentionShape {
  int64_t batch = 0, heads = 0, kv_heads = 0, sequence = 0, head_dim = 0;

  // The cost model's attention: the causal half of the square, two matmuls forward and five
  // backward; q, k, v and the result once, backward their gradients too.
  [[nodiscard]] Attention attention(bool backward) const;
  auto operator<=>(const AttentionShape&) const = default;
};

enum class Kernel {
  kCopy,
  kResidualAdd,
  kDropoutAddForward,
  kDropoutBackward,
  kRmsNormForward,
  kRmsNormBackward,
  kLayerNormForward,
  kLayerNormBackward,
  kNormWeightGradient,
  kGeluForward,
  kGeluBackward,
  kSwigluForward,
  kSwigluBackward,
  kSoftmaxForward,
  kSoftmaxBackward,
  kCrossEntropyForward,
  kCrossEntropyBackward,
  kAdamStep,
};

[[nodiscard]] std::string_view name_of(Kernel kernel);
[[nodiscard]] const std::vector<Kernel>& all_kernels();

// A memory-bound kernel over rows x columns elements (Adam: that many parameters).
struct KernelSpec {
  Kernel kernel = Kernel::kCopy;
  int64_t rows = 0, columns = 0;

  // Bytes that must move: every operand once.
  [[nodiscard]] double bytes() const;
  auto operator<=>(const KernelSpec&) const = default;
};

struct LayerShape {
  std::string name;
  int64_t hidden = 0, feed_forward = 0, heads = 0, kv_heads = 0, head_dim = 0, vocabulary = 0;
  bool gated = false;     // SwiGLU instead of GELU
  bool rms_norm = false;  // instead of layer norm
  bool dropout = false;   // on the two residual branches
};

struct LayerSlice {
  LayerShape shape;
  int64_t tensor_parallel = 1, micro_batch = 1, sequence = 1024;

  [[nodiscard]] int64_t tokens() const { return micro_batch * sequence; }
  void require_divisible() const;
  [[nodiscard]] int64_t qkv_out() const;
  [[nodiscard]] int64_t attention_width() const;
  [[nodiscard]] int64_t first_out()
      const;  // columns of the first MLP matmul (both halves when gated)
  [[nodiscard]] int64_t activation_width() const;
  [[nodiscard]] int64_t vocabulary_out() const;
  [[nodiscard]] AttentionShape attention() const;
};

[[nodiscard]] std::vector<MatmulSpec> layer_matmuls(const LayerSlice& slice, Precision precision);
[[nodiscard]] std::vector<KernelSpec> layer_kernels(const LayerSlice& slice, char pass);
[[nodiscard]] std::vector<MatmulSpec> vocabulary_matmuls(const LayerSlice& slice,
                                                         Precision precision);

enum class Mode { kQuick, kFull };

// Everything that one calibration measures, in the order in which it does.
struct Plan {
  std::vector<MatmulSpec> matmuls;
  std::vector<AttentionShape> attention;
  std::vector<KernelSpec> kernels;
  std::vector<LayerSlice> layers;
  std::vector<int64_t> copy_bytes;
  std::vector<int64_t> message_bytes;
  double time_limit_s = 0;  // no measurement starts later than this
  double burn_in_s = 0;
  double sample_target_us = 0;
  double point_budget_us = 0;
  int maximum_repetitions = 0;
};

[[nodiscard]] const std::vector<LayerShape>& layer_catalogue();
[[nodiscard]] const LayerShape& layer_named(std::string_view name);
[[nodiscard]] Plan make_plan(Mode mode);

}  // namespace pipesim::calibration
