// Causal scaled dot-product attention, forward and backward, as cuDNN operation graphs.
//
// Layout: packed (batch, sequence, heads, head_dim) in bf16, the layout that a fused QKV matmul
// leaves and that needs no transposition; the row statistics (log of the softmax denominator plus
// the row maximum) are fp32, (batch, heads, sequence, 1). Grouped-query attention when kv_heads <
// heads. No dropout. The backward pass accumulates dQ in fp32 and converts it, as the fused kernel
// requires; `dq_accumulator` must be zero when it starts. Errors: CudnnError when cuDNN has no
// engine for the shape on the card. Source of the mathematics: Dao et al., FlashAttention (2022).
#pragma once

#include <cstdint>

#include "validate/calibration/harness/cudnn_graph.h"
#include "validate/calibration/shapes.h"

namespace pipesim::calibration {

struct AttentionForwardGraph {
  CudnnGraph graph;
  int64_t q = 0, k = 0, v = 0, o = 0, statistics = 0;
  int64_t scale = 0, minus_infinity = 0;
};

struct AttentionBackwardGraph {
  CudnnGraph graph;
  int64_t q = 0, k = 0, v = 0, o = 0, d_o = 0, statistics = 0;
  int64_t d_q = 0, d_k = 0, d_v = 0;
  int64_t dq_accumulator = 0;  // fp32, batch x heads x sequence x head_dim
  int64_t row_sums = 0;        // fp32, batch x heads x sequence
  int64_t scale = 0, minus_infinity = 0, one = 0;
};

[[nodiscard]] AttentionForwardGraph attention_forward_graph(const AttentionShape& shape);
[[nodiscard]] AttentionBackwardGraph attention_backward_graph(const AttentionShape& shape);

}  // namespace pipesim::calibration
