#include "validate/calibration/harness/attention_graph.h"

namespace pipesim::calibration {
namespace {

constexpr cudnnDataType_t kBf16 = CUDNN_DATA_BFLOAT16;
constexpr cudnnDataType_t kFp32 = CUDNN_DATA_FLOAT;
constexpr auto kMemory = TensorKind::kMemory;
constexpr auto kVirtual = TensorKind::kVirtual;

// The sizes every tensor of the graphs is made of.
struct Sizes {
  explicit Sizes(const AttentionShape& shape)
      : batch(shape.batch),
        heads(shape.heads),
        kv_heads(shape.kv_heads),
        sequence(shape.sequence),
        depth(shape.head_dim) {}

  [[nodiscard]] Dimensions rows(int64_t h) const { return {batch, h, sequence, depth}; }
  [[nodiscard]] Dimensions row_strides(int64_t h) const {
    return {sequence * h * depth, depth, h * depth, 1};
  }
  [[nodiscard]] Dimensions columns(int64_t h) const { return {batch, h, depth, sequence}; }
  [[nodiscard]] Dimensions column_strides(int64_t h) const {
    return {sequence * h * depth, depth, 1, h * depth};
  }
  [[nodiscard]] Dimensions scores() const { return {batch, heads, sequence, sequence}; }
  [[nodiscard]] Dimensions transposed_strides() const {
    return {heads * sequence * sequence, sequence * sequence, 1, sequence};
  }
  [[nodiscard]] Dimensions per_row() const { return {batch, heads, sequence, 1}; }

  int64_t batch, heads, kv_heads, sequence, depth;
};

// Scores below the diagonal stay, the others become minus infinity.
CudnnGraph::Id causal(CudnnGraph& graph, const Sizes& sizes, CudnnGraph::Id scores,
                      CudnnGraph::Id minus_infinity) {
  const auto row = graph.intermediate(sizes.scores(), CUDNN_DATA_INT32);
  const auto column = graph.intermediate(sizes.scores(), CUDNN_DATA_INT32);
  const auto mask = graph.intermediate(sizes.scores(), CUDNN_DATA_BOOLEAN);
  const auto masked = graph.intermediate(sizes.scores());
  graph.index_along(2, scores, row);
  graph.index_along(3, scores, column);
  graph.binary(CUDNN_POINTWISE_CMP_GE, row, column, mask);
  graph.select(scores, minus_infinity, mask, masked);
  return masked;
}

}  // namespace

AttentionForwardGraph attention_forward_graph(const AttentionShape& shape) {
  const Sizes sizes(shape);
  AttentionForwardGraph result;
  CudnnGraph& g = result.graph;
  result.q = g.tensor(sizes.rows(sizes.heads), sizes.row_strides(sizes.heads), kBf16, kMemory);
  // The first product reads K transposed; that is a matter of strides only.
  result.k =
      g.tensor(sizes.columns(sizes.kv_heads), sizes.column_strides(sizes.kv_heads), kBf16, kMemory);
  result.v =
      g.tensor(sizes.rows(sizes.kv_heads), sizes.row_strides(sizes.kv_heads), kBf16, kMemory);
  result.o = g.tensor(sizes.rows(sizes.heads), sizes.row_strides(sizes.heads), kBf16, kMemory);
  result.statistics =
      g.tensor(sizes.per_row(), CudnnGraph::packed(sizes.per_row()), kFp32, kMemory);
  result.scale = g.scalar();
  result.minus_infinity = g.scalar();

  const auto scores = g.intermediate(sizes.scores());
  const auto scaled = g.intermediate(sizes.scores());
  g.matmul(result.q, result.k, scores);
  g.binary(CUDNN_POINTWISE_MUL, scores, result.scale, scaled);
  const auto masked = causal(g, sizes, scaled, result.minus_infinity);

  const auto maximum = g.intermediate(sizes.per_row());
  const auto shifted = g.intermediate(sizes.scores());
  const auto exponential = g.intermediate(sizes.scores());
  const auto sum = g.intermediate(sizes.per_row());
  const auto log_sum = g.intermediate(sizes.per_row());
  const auto probability = g.intermediate(sizes.scores(), kBf16);
  g.reduce(CUDNN_REDUCE_TENSOR_MAX, masked, maximum);
  g.binary(CUDNN_POINTWISE_SUB, masked, maximum, shifted);
  g.unary(CUDNN_POINTWISE_EXP, shifted, exponential);
  g.reduce(CUDNN_REDUCE_TENSOR_ADD, exponential, sum);
  g.unary(CUDNN_POINTWISE_LOG, sum, log_sum);
  g.binary(CUDNN_POINTWISE_ADD, maximum, log_sum, result.statistics);
  g.binary(CUDNN_POINTWISE_DIV, exponential, sum, probability);
  g.matmul(probability, result.v, result.o);
  return result;
}

AttentionBackwardGraph attention_backward_graph(const AttentionShape& shape) {
  const Sizes sizes(shape);
  AttentionBackwardGraph result;
  CudnnGraph& g = result.graph;
  const auto rows = [&](int64_t h) {
    return g.tensor(sizes.rows(h), sizes.row_strides(h), kBf16, kMemory);
  };
  const auto columns = [&](int64_t h) {
    return g.tensor(sizes.columns(h), sizes.column_strides(h), kBf16, kMemory);
  };
  result.q = rows(sizes.heads);
  result.k = columns(sizes.kv_heads);
  result.v = columns(sizes.kv_heads);
  result.o = rows(sizes.heads);
  result.d_o = rows(sizes.heads);
  result.d_q = rows(sizes.heads);
  result.d_k = rows(sizes.kv_heads);
  result.d_v = rows(sizes.kv_heads);
  result.statistics =
      g.tensor(sizes.per_row(), CudnnGraph::packed(sizes.per_row()), kFp32, kMemory);
  result.row_sums = g.tensor(sizes.per_row(), CudnnGraph::packed(sizes.per_row()), kFp32, kMemory);
  const Dimensions full = sizes.rows(sizes.heads);
  result.dq_accumulator = g.tensor(full, CudnnGraph::packed(full), kFp32, kMemory);
  result.scale = g.scalar();
  result.minus_infinity = g.scalar();
  const auto one = g.scalar();
  result.one = one;

  // Row sums of dO * O: what the softmax's own gradient subtracts.
  const auto product = g.tensor(full,
                                {sizes.heads * sizes.sequence * sizes.depth,
                                 sizes.sequence * sizes.depth, sizes.heads * sizes.depth, 1},
                                kFp32, kVirtual);
  const auto reduced = g.intermediate(sizes.per_row());
  g.binary(CUDNN_POINTWISE_MUL, result.d_o, result.o, product);
  g.reduce(CUDNN_REDUCE_TENSOR_ADD, product, reduced);
  // The engine's pattern has a dropout factor here; without dropout it is one.
  g.binary(CUDNN_POINTWISE_MUL, reduced, one, result.row_sums);

  // The probabilities again, from the scores and the saved statistics.
  const auto scores = g.intermediate(sizes.scores());
  const auto scaled = g.intermediate(sizes.scores());
  const auto shifted = g.intermediate(sizes.scores());
  const auto probability = g.intermediate(sizes.scores());
  g.matmul(result.q, result.k, scores);
  g.binary(CUDNN_POINTWISE_MUL, scores, result.scale, scaled);
  g.binary(CUDNN_POINTWISE_SUB, scaled, result.statistics, shifted);
  g.unary(CUDNN_POINTWISE_EXP, causal(g, sizes, shifted, result.minus_infinity), probability);

  // Per query head; with grouped queries the heads of a group are then summed.
  const bool grouped = sizes.heads != sizes.kv_heads;
  const auto transposed_matmul = [&](CudnnGraph::Id x, CudnnGraph::Id b, CudnnGraph::Id out) {
    const auto transposed = g.tensor(sizes.scores(), sizes.transposed_strides(), kBf16, kVirtual);
    g.reshape(x, transposed);
    const auto target = grouped ? g.intermediate(full, kBf16) : out;
    g.matmul(transposed, b, target);
    if (grouped) g.reduce(CUDNN_REDUCE_TENSOR_ADD, target, out);
  };
  transposed_matmul(probability, result.d_o, result.d_v);

  const auto d_probability = g.intermediate(sizes.scores());
  const auto centred = g.intermediate(sizes.scores());
  const auto d_scores = g.intermediate(sizes.scores());
  const auto d_scaled = g.intermediate(sizes.scores(), kBf16);
  g.matmul(result.d_o, result.v, d_probability);
  g.binary(CUDNN_POINTWISE_SUB, d_probability, result.row_sums, centred);
  g.binary(CUDNN_POINTWISE_MUL, centred, probability, d_scores);
  g.binary(CUDNN_POINTWISE_MUL, d_scores, result.scale, d_scaled);
  transposed_matmul(d_scaled, result.q, result.d_k);

  const auto k_rows =
      g.tensor(sizes.rows(sizes.kv_heads), sizes.row_strides(sizes.kv_heads), kBf16, kVirtual);
  g.reshape(result.k, k_rows);
  g.matmul(d_scaled, k_rows, result.dq_accumulator);
  g.unary(CUDNN_POINTWISE_IDENTITY, result.dq_accumulator, result.d_q);
  return result;
}

}  // namespace pipesim::calibration
