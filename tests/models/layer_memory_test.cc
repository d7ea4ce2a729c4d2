#include "models/layer_memory.h"

#include <gtest/gtest.h>
#include <vector>

#include "models/layer_parameters.h"
#include "tests/models/shapes.h"

namespace pipesim::layer_memory_test {
namespace {

using testing::deepseek_v3;
using testing::gpt;
using testing::llama3_70b;
using testing::mixtral;
using testing::plain;

constexpr double kS = 2048;
constexpr double kB = 4;
constexpr double kH = 6144;
constexpr double kA = 64;

double activation(const LayerContext& context) {
  return layer_memory(gpt(48, 6144, 64), LayerKind::kDense, context).activation.value();
}

TEST(LayerMemory, KeepsTheActivationsOfKorthikantisTable2) {
  const double sbh = kS * kB * kH;
  const double scores = 5 * kA * kS / kH;
  EXPECT_DOUBLE_EQ(activation(plain(4, 2048)), sbh * (34 + scores));
  EXPECT_DOUBLE_EQ(activation(plain(4, 2048, 8)), sbh * (10 + 24 / 8.0 + scores / 8));
  EXPECT_DOUBLE_EQ(activation(plain(4, 2048, 8, true)), sbh / 8 * (34 + scores));
  LayerContext selective = plain(4, 2048, 8);
  selective.recompute = RecomputeGranularity::kSelective;
  EXPECT_DOUBLE_EQ(activation(selective), sbh * (10 + 24 / 8.0));
  selective.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(activation(selective), sbh / 8 * 34);
}

// Inputs of QKV and of the MLP stand whole instead of divided: 4sbh (1 - 1/t) more.
TEST(LayerMemory, KeepsGatheredInputsWhereTheFrameworkDoes) {
  LayerContext gathered = plain(4, 2048, 8, true);
  gathered.keeps_gathered = true;
  EXPECT_DOUBLE_EQ(activation(gathered) - activation(plain(4, 2048, 8, true)),
                   4 * kS * kB * kH * (1 - 1 / 8.0));
}

TEST(LayerMemory, KeepsTheInputUnderFullRecompute) {
  const LayerMemory memory = layer_memory(gpt(48, 6144, 64), LayerKind::kDense, plain(4, 2048, 8));
  EXPECT_DOUBLE_EQ(memory.checkpoint.value(), 2 * kS * kB * kH);
}

// Percent of tensor parallelism alone, read off Korthikanti 2023, Figure 7: the worst of 16 is 1.1%
// off. Full recompute is the paper's without sequence parallelism: 2sbh on every tensor rank.
TEST(LayerMemory, SavesWhatKorthikantisFigure7Shows) {
  struct Row {
    int layers, hidden, heads, batch;
    double sequence, selective, both, full;
  };
  const std::vector<Row> rows{{48, 6144, 64, 4, 66.84, 49.42, 16.18, 7.64},
                              {96, 12288, 96, 1, 62.04, 56.53, 18.49, 8.71},
                              {105, 20480, 128, 1, 58.31, 62.04, 20.27, 9.42},
                              {128, 25600, 160, 1, 58.31, 62.04, 20.27, 9.42}};
  for (const Row& row : rows) {
    const Transformer model = gpt(row.layers, row.hidden, row.heads);
    const auto percent = [&](bool sequence, RecomputeGranularity recompute) {
      LayerContext context = plain(row.batch, 2048, 8);
      const double base = layer_memory(model, LayerKind::kDense, context).activation.value();
      context.sequence_parallel = sequence;
      context.recompute = recompute;
      const LayerMemory memory = layer_memory(model, LayerKind::kDense, context);
      const bool full = recompute == RecomputeGranularity::kFull;
      return 100 * (full ? memory.checkpoint : memory.activation).value() / base;
    };
    EXPECT_NEAR(percent(true, RecomputeGranularity::kNone) / row.sequence, 1, 0.015);
    EXPECT_NEAR(percent(false, RecomputeGranularity::kSelective) / row.selective, 1, 0.015);
    EXPECT_NEAR(percent(true, RecomputeGranularity::kSelective) / row.both, 1, 0.015);
    EXPECT_NEAR(percent(false, RecomputeGranularity::kFull) / row.full, 1, 0.015);
  }
}

TEST(LayerMemory, FillsTheGpusOfKorthikantisFigure1) {
  struct Row {
    int layers, hidden, heads, batch;
    double pipeline, chunks, none, both;  // GiB on the first stage
  };
  const std::vector<Row> rows{{48, 6144, 64, 4, 1, 1, 59.25, 9.5625},
                              {96, 12288, 96, 1, 8, 3, 66.84375, 12.3515625},
                              {105, 20480, 128, 1, 35, 3, 114.0234375, 23.076171875},
                              {128, 25600, 160, 1, 64, 1, 131.25, 26.5625}};
  for (const Row& row : rows) {
    const Transformer model = gpt(row.layers, row.hidden, row.heads);
    // In flight on the first of p stages: all layers, and with v chunks (p - 1) / pv of them more.
    const double more = row.chunks > 1 ? 1 + (row.pipeline - 1) / (row.pipeline * row.chunks) : 1;
    const double layers = row.layers * more;
    LayerContext context = plain(row.batch, 2048, 8);
    EXPECT_NEAR(layers * (layer_memory(model, LayerKind::kDense, context).activation / kGiB),
                row.none, 1e-9);
    context.sequence_parallel = true;
    context.recompute = RecomputeGranularity::kSelective;
    EXPECT_NEAR(layers * (layer_memory(model, LayerKind::kDense, context).activation / kGiB),
                row.both, 1e-9);
  }
}

TEST(LayerMemory, KeepsForWWhatZeroBubbleTable1Says) {
  const LayerMemory memory = layer_memory(gpt(22, 2304, 24), LayerKind::kDense, plain(6, 1024));
  EXPECT_DOUBLE_EQ(memory.activation.value(), 1024.0 * 6 * (34 * 2304 + 5 * 24 * 1024));
  EXPECT_DOUBLE_EQ(memory.weight_stash.value(), 32 * 1024.0 * 6 * 2304);
}

TEST(LayerMemory, FlashAttentionKeepsANumberPerTokenAndHead) {
  LayerContext context = plain(4, 2048);
  context.flash_attention = true;
  EXPECT_DOUBLE_EQ(activation(context), kS * kB * (34 * kH + 4 * kA));
  context.dropout = false;
  EXPECT_DOUBLE_EQ(activation(context), kS * kB * (32 * kH + 4 * kA)) << "without two masks";
  context.recompute = RecomputeGranularity::kSelective;
  EXPECT_DOUBLE_EQ(activation(context), kS * kB * 32 * kH);
}

// PipeOffload, section 4.4: (16 + 4 g / a) b s h, 20 without groups.
TEST(LayerMemory, KeepsWhatPipeOffloadSaysUnderPointwiseRecompute) {
  LayerContext context = plain(4, 2048);
  context.flash_attention = true;
  context.recompute = RecomputeGranularity::kPointwise;
  EXPECT_DOUBLE_EQ(activation(context), kS * kB * (20 * kH + 4 * kA)) << "and a number per head";
  Transformer grouped = gpt(22, 2304, 24);
  grouped.num_query_groups = 8;
  const LayerMemory memory = layer_memory(grouped, LayerKind::kDense, context);
  EXPECT_DOUBLE_EQ(memory.activation.value(), 4.0 * 2048 * ((16 + 4.0 * 8 / 24) * 2304 + 4 * 24));
  EXPECT_GT(memory.weight_stash, memory.activation) << "what B makes again is kept for W";
}

TEST(LayerMemory, CountsGroupedQueriesAndTheGatedMlpTensorByTensor) {
  LayerContext context;
  context.seq_length = 4096;
  const double h = 8192;
  const double f = 28672;
  const double keys = 8 * 128;
  const LayerMemory memory = layer_memory(llama3_70b(), LayerKind::kDense, context);
  // Inputs of two norms, of both column matrices, queries and output; keys, values; MLP.
  EXPECT_DOUBLE_EQ(memory.activation.value(), 4096 * (2 * (6 * h + 2 * keys + 3 * f) + 4 * 64));
  // Inputs of four matrices, and the gradients of their outputs.
  EXPECT_DOUBLE_EQ(memory.weight_stash.value(),
                   4096 * 2 * ((3 * h + f) + (h + 2 * keys + h + 2 * f + h)));
}

TEST(LayerMemory, CountsTheRowsOfExperts) {
  LayerContext context;
  context.seq_length = 4096;
  double rows = 0;
  for (const KeptTensor& tensor : kept_tensors(mixtral(), LayerKind::kMoe, context)) {
    if (std::string_view(tensor.name) == "input of the experts") rows = tensor.bytes.value();
  }
  EXPECT_DOUBLE_EQ(rows, 2 * 4096.0 * 4096 * 2) << "two experts per token";
  const LayerMemory memory = layer_memory(mixtral(), LayerKind::kMoe, context);
  const double h = 4096;
  const double f = 14336;
  EXPECT_DOUBLE_EQ(memory.activation.value(),
                   4096 * (2 * (6 * h + 2 * 1024) + 4 * 32 + 4 * 8 + 2 * 2 * (h + 3 * f)));
}

TEST(LayerMemory, KeepsLogitsInFp32UntilB) {
  const LayerMemory memory =
      layer_memory(gpt(48, 6144, 64), LayerKind::kOutput, plain(4, 2048, 8, true));
  // 4sbh/t (1 + V/h): Korthikanti 2023, section 4.3.
  EXPECT_DOUBLE_EQ(memory.activation.value(), 4 * kS * kB * kH / 8 * (1 + 51200 / kH));
  EXPECT_EQ(memory.checkpoint, memory.activation);
}

TEST(LayerMemory, DividesTheParametersOfAGpu) {
  LayerContext context = plain(1, 4096, 8, true);
  const LayerMemory dense = layer_memory(llama3_70b(), LayerKind::kDense, context);
  const double norms = 2 * 8192;
  EXPECT_DOUBLE_EQ(dense.dense_parameters,
                   (parameters(llama3_70b(), LayerKind::kDense) - norms) / 8 + norms);
  EXPECT_EQ(dense.expert_parameters, 0);
  EXPECT_DOUBLE_EQ(dense.weights.value(), 2 * dense.dense_parameters);
  context.expert = 32;
  const LayerMemory moe = layer_memory(deepseek_v3(), LayerKind::kMoe, context);
  EXPECT_DOUBLE_EQ(moe.expert_parameters, 256.0 / 32 * 3 * 7168 * 2048);
  context = plain(1, 4096);
  const LayerMemory whole = layer_memory(deepseek_v3(), LayerKind::kMoe, context);
  EXPECT_DOUBLE_EQ(whole.dense_parameters + whole.expert_parameters,
                   parameters(deepseek_v3(), LayerKind::kMoe));
}

TEST(LayerMemory, KeepsInputsOfFp8MatricesInAByte) {
  LayerContext context;
  context.seq_length = 4096;
  const LayerMemory bf16 = layer_memory(llama3_70b(), LayerKind::kDense, context);
  context.precision = Precision::kFp8;
  const LayerMemory fp8 = layer_memory(llama3_70b(), LayerKind::kDense, context);
  EXPECT_DOUBLE_EQ(2 * fp8.weight_stash.value(), bf16.weight_stash.value());
  // Two inputs of h and one of f at half; attention's output once more, in fp8.
  EXPECT_DOUBLE_EQ((bf16.activation - fp8.activation).value(), 4096.0 * (2 * 8192 + 28672 - 8192));
  EXPECT_GT(fp8.weights, bf16.weights);
}

TEST(LayerMemory, DividesMessagesWhereTensorRanksSendParts) {
  LayerContext context = plain(2, 2048, 8);
  const Transformer model = gpt(48, 6144, 64);
  EXPECT_EQ(message_bytes(model, context), Bytes(2.0 * 2048 * 2 * 6144));
  context.scatter_sends = true;
  EXPECT_EQ(message_bytes(model, context), Bytes(2.0 * 2048 * 2 * 6144 / 8));
  context.scatter_sends = false;
  context.sequence_parallel = true;
  context.context = 2;
  EXPECT_EQ(message_bytes(model, context), Bytes(2.0 * 2048 * 2 * 6144 / 16));
}

TEST(LayerMemory, KeepsFp8WeightsBesideOrAloneAndTransposedWhereTheGpuNeedsIt) {
  const Transformer model = llama3_70b();
  const LayerParameters held = layer_parameters(model, LayerKind::kDense, {1, 1, 1});
  LayerContext context = plain(1, 4096);
  context.precision = Precision::kFp8;
  const auto weights = [&](bool alone, bool transposes) {
    context.fp8_parameters = alone;
    context.fp8_transposes = transposes;
    return layer_memory(model, LayerKind::kDense, context).weights.value();
  };
  const double others = 2 * (held.dense - held.matmul);
  EXPECT_DOUBLE_EQ(weights(false, true), others + 4 * held.matmul);
  EXPECT_DOUBLE_EQ(weights(false, false), others + 3 * held.matmul);
  EXPECT_DOUBLE_EQ(weights(true, true), others + 2 * held.matmul);
  EXPECT_DOUBLE_EQ(weights(true, false), others + held.matmul);
  context.precision = Precision::kFp4;
  EXPECT_DOUBLE_EQ(weights(false, true), others + 3 * held.matmul);
}

TEST(LayerMemory, KeepsTheGateOfAnActivationThatIsNotFused) {
  LayerContext context = plain(1, 4096);
  const auto kept = [&] {
    return layer_memory(llama3_70b(), LayerKind::kDense, context).activation.value();
  };
  const double fused = kept();
  context.fused_gate = false;
  EXPECT_DOUBLE_EQ(kept() - fused, 2.0 * 4096 * 28672);
  context.recompute = RecomputeModule::kMlpActivation;
  EXPECT_DOUBLE_EQ(kept(), fused - 2.0 * 4096 * 28672) << "made again with the activation";
}

TEST(LayerMemory, KeepsNoMoreThanItsListHasRoomFor) {
  LayerContext context = plain(1, 4096);
  context.precision = Precision::kFp8;
  context.fused_gate = false;
  for (const LayerKind kind : {LayerKind::kDense, LayerKind::kMoe, LayerKind::kMtp}) {
    const KeptTensors tensors = kept_tensors(deepseek_v3(), kind, context);
    EXPECT_LT(tensors.size(), tensors.capacity());
    for (const KeptTensor& tensor : tensors) EXPECT_GT(tensor.bytes, Bytes(0)) << tensor.name;
  }
}

}  // namespace
}  // namespace pipesim::layer_memory_test
