// DeepSeek-V4's layers: compressed attention and residual streams; Kimi K3's weighed residuals.
#include <gtest/gtest.h>

#include "models/layer_memory.h"
#include "models/layer_parameters.h"
#include "models/layer_work.h"
#include "tests/models/shapes.h"

namespace pipesim::compressed_test {
namespace {

using testing::kept;
using testing::llama3_70b;
using testing::sequence;

Work forward(const Transformer& model, LayerKind kind, const LayerContext& context) {
  return layer_work(model, kind, PassKind::kF, context);
}

constexpr double kHidden = 8192;
constexpr double kRank = 1024;
constexpr double kHead = 512;
constexpr double kQueries = 64;

// 64 heads of 512, a window of 128, stretches of 4 of which 256 are found, and of 128.
Transformer compressed() {
  Transformer model = llama3_70b();
  model.num_query_groups = 1;
  model.kv_channels = 512;
  model.attention_window = 128;
  model.layer_pattern = "WXY";
  model.compressed = CompressedAttention{
      .q_rank = 1024, .output_groups = 8, .output_rank = 1024, .ratio = 128, .indexed_ratio = 4};
  model.sparse = SparseAttention{.num_heads = 64, .head_size = 128, .topk = 256};
  return model;
}

constexpr double kCompressor = 2 * kHidden * kHead;
constexpr double kIndexer = kRank * 64 * 128 + kHidden * (4 * 128 + 64);

TEST(Compressed, HasOneKeyCompressedOutputsAndCompressors) {
  const Transformer model = compressed();
  EXPECT_EQ(fault_of(model), "");
  const double mlp = 3 * kHidden * 28672 + kHidden;
  const double window = kHidden * kRank + kRank * kQueries * kHead + kHidden * kHead + kRank +
                        kHead + kQueries * kHead * 1024 + 8 * 1024 * kHidden + kHidden;
  EXPECT_DOUBLE_EQ(parameters(model, LayerKind::kWindowDense), window + mlp);
  EXPECT_DOUBLE_EQ(parameters(model, LayerKind::kCompressedDense),
                   window + mlp + kCompressor + 128 * kHead + kHead);
  // Stretches that overlap are twice as wide.
  EXPECT_DOUBLE_EQ(parameters(model, LayerKind::kIndexedDense),
                   window + mlp + 2 * kCompressor + 4 * 2 * kHead + kHead + kIndexer + 2 * 128);
}

TEST(Compressed, SeesAWindowAndWhatIsBeforeIt) {
  const Transformer model = compressed();
  const double s = 8192;
  const double window = 128 - 128.0 * 128 / (2 * s);
  EXPECT_DOUBLE_EQ(mean_keys(model, Mixer::kWindow, 8192, true), window);
  EXPECT_DOUBLE_EQ(mean_keys(model, Mixer::kCompressed, 8192, true), window + s / 2 / 128);
  // 256 stretches of 4 tokens.
  EXPECT_DOUBLE_EQ(mean_keys(model, Mixer::kIndexed, 8192, true),
                   window + (1024 - 1024.0 * 1024 / (2 * s)) / 4);
  EXPECT_DOUBLE_EQ(mean_keys(model, Mixer::kIndexed, 64, true), 32 + 32.0 / 4);
}

TEST(Compressed, TakesTheFlopsOfItsMatricesAndPairs) {
  const Transformer model = compressed();
  const LayerContext context = sequence(8192);
  const double s = 8192;
  const double projections = kHidden * kRank + kRank * kQueries * kHead + kHidden * kHead +
                             kQueries * kHead * 1024 + 8 * 1024 * kHidden;
  const double mlp = 3 * kHidden * 28672;
  const auto attention = [&](Mixer mixer) {
    return s * mean_keys(model, mixer, 8192, true) * kQueries * 4 * kHead;
  };
  EXPECT_DOUBLE_EQ(flops(forward(model, LayerKind::kCompressedDense, context)).value(),
                   2 * s * (projections + mlp + kCompressor) + attention(Mixer::kCompressed));
  // The indexer scores stretches, not tokens.
  const double scores = 2 * s * (s / 2 / 4) * 64 * 128;
  EXPECT_DOUBLE_EQ(flops(forward(model, LayerKind::kIndexedDense, context)).value(),
                   2 * s * (projections + mlp + 2 * kCompressor + kIndexer) + scores +
                       attention(Mixer::kIndexed));
  const Work backward = layer_work(model, LayerKind::kCompressedDense, PassKind::kB, context);
  EXPECT_DOUBLE_EQ(backward.attention[0].flops.value(), 2.5 * attention(Mixer::kCompressed));
  // No groups of experts: the heads' groups run as evenly as one matmul.
  for (const Matmul& matmul : backward.matmuls) EXPECT_FALSE(matmul.grouped) << matmul.name;
}

TEST(Compressed, ReadsItsKeysOnceForAllHeads) {
  const Transformer model = compressed();
  const LayerContext context = sequence(8192);
  const double s = 8192;
  const double rows = 2 * s * kQueries * kHead;
  EXPECT_DOUBLE_EQ(forward(model, LayerKind::kCompressedDense, context).attention[0].moved.value(),
                   2 * (rows + s * (1 + 1.0 / 128) * kHead));
  // Each query gathers its own.
  EXPECT_DOUBLE_EQ(forward(model, LayerKind::kIndexedDense, context).attention[1].moved.value(),
                   2 * (rows + s * mean_keys(model, Mixer::kIndexed, 8192, true) * kHead));
  // Kept beside the window's: what becomes one key, these, and what the indexer reads and finds.
  const double window = kept(model, LayerKind::kWindowDense, context);
  EXPECT_DOUBLE_EQ(kept(model, LayerKind::kCompressedDense, context) - window,
                   2 * s * (2 * kHead + kHead / 128));
  EXPECT_DOUBLE_EQ(kept(model, LayerKind::kIndexedDense, context) - window,
                   s * (2 * (4 * kHead + kHead / 4) + 2 * (64 * 128 + 4 * 128 + 64) + 4 * 256));
}

TEST(Compressed, IsDividedByGroupsOfOutputsAndNotOverContextRanks) {
  EXPECT_EQ(fault_of(compressed(), sequence(8192, 8)), "");
  EXPECT_NE(fault_of(compressed(), sequence(8192, 16)).find("output_groups 8 does not divide"),
            std::string::npos);
  LayerContext parts = sequence(8192);
  parts.context = 2;
  EXPECT_NE(fault_of(compressed(), parts).find("context parallelism of compressed attention"),
            std::string::npos);
  const WeightDivision eight{.tensor = 8};
  const double whole = kHidden * kRank + kHidden * kHead + kRank + kHead + 2 * kHidden;
  const double divided =
      kRank * kQueries * kHead + kQueries * kHead * 1024 + 8 * 1024 * kHidden + 3 * kHidden * 28672;
  EXPECT_DOUBLE_EQ(layer_parameters(compressed(), LayerKind::kWindowDense, eight).dense,
                   whole + divided / 8);
}

TEST(Compressed, SaysWhatItLacks) {
  Transformer model = compressed();
  model.sparse.reset();
  EXPECT_EQ(fault_of(model), "X in layer_pattern needs sparse_attention, its indexer");
  model = compressed();
  model.num_query_groups = 8;
  EXPECT_NE(fault_of(model).find("one key for all heads"), std::string::npos);
  model = compressed();
  model.layer_pattern = "WG";
  EXPECT_NE(fault_of(model).find("layers W, Y and X alone"), std::string::npos);
  model = compressed();
  model.compressed->output_groups = 7;
  EXPECT_NE(fault_of(model).find("output_groups that divide the heads"), std::string::npos);
  model = llama3_70b();
  model.layer_pattern = "Y";
  EXPECT_EQ(fault_of(model), "Y and X in layer_pattern need compressed_attention");
}

TEST(ResidualStreams, AreMixedBeforeAttentionAndMlp) {
  Transformer model = llama3_70b();
  model.residual_streams = 4;
  const double h = model.hidden_size;
  const double site = (4 * 4 + 2 * 4) * (4 * h + 1) + 3;
  EXPECT_DOUBLE_EQ(
      parameters(model, LayerKind::kDense) - parameters(llama3_70b(), LayerKind::kDense), 2 * site);
  EXPECT_DOUBLE_EQ(
      parameters(model, LayerKind::kOutput) - parameters(llama3_70b(), LayerKind::kOutput),
      4 * (4 * h + 1) + 1);
  const LayerContext context = sequence(4096);
  const auto more = [&](PassKind pass, auto of) {
    return of(layer_work(model, LayerKind::kDense, pass, context)) -
           of(layer_work(llama3_70b(), LayerKind::kDense, pass, context));
  };
  const auto work = [](const Work& each) { return flops(each).value(); };
  const auto moved = [](const Work& each) { return each.moved.value(); };
  EXPECT_DOUBLE_EQ(more(PassKind::kF, work), 2 * 2 * 4096 * 24 * 4 * h);
  // Before attention and MLP each: four are read and one is written, then four and one, and four.
  const double one = 4096 * h * 2;
  EXPECT_DOUBLE_EQ(more(PassKind::kF, moved), 2 * (5 + 9 - 3) * one);
  EXPECT_DOUBLE_EQ(more(PassKind::kB, moved), 2 * (9 + 14 - 3) * one);
  // Streams and the output that they take are kept beside, and stages send all streams.
  EXPECT_DOUBLE_EQ(
      kept(model, LayerKind::kDense, context) - kept(llama3_70b(), LayerKind::kDense, context),
      2 * 5 * one);
  EXPECT_DOUBLE_EQ(message_bytes(model, context).value(), 4 * one);
  EXPECT_DOUBLE_EQ(layer_memory(model, LayerKind::kDense, context).checkpoint.value(), 4 * one);
}

// 80 layers of 20 each: 1, 2, 3 and 4 sums, 2.5 in the mean, beside that of the layers at hand.
TEST(ResidualBlock, WeighsTheSumsOfEarlierLayers) {
  Transformer model = llama3_70b();
  model.residual_block = 20;
  const double h = model.hidden_size;
  EXPECT_DOUBLE_EQ(residual_sums(model), 2.5);
  EXPECT_DOUBLE_EQ(
      parameters(model, LayerKind::kDense) - parameters(llama3_70b(), LayerKind::kDense), 4 * h);
  const LayerContext context = sequence(4096);
  const double one = 4096 * h * 2;
  EXPECT_DOUBLE_EQ(forward(model, LayerKind::kDense, context).moved.value() -
                       forward(llama3_70b(), LayerKind::kDense, context).moved.value(),
                   2 * 4.5 * one);
  EXPECT_DOUBLE_EQ(message_bytes(model, context).value(), 3.5 * one);
  EXPECT_DOUBLE_EQ(
      kept(model, LayerKind::kDense, context) - kept(llama3_70b(), LayerKind::kDense, context),
      (2 + 1.0 / 20) * one);
  model.residual_streams = 2;
  EXPECT_EQ(fault_of(model), "a model has residual_streams or residual_block");
}

}  // namespace
}  // namespace pipesim::compressed_test
