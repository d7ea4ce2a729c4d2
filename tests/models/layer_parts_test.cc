// Parts that layers of some models have: an indexer, heads of other sizes, experts in a latent
// space.
#include <algorithm>
#include <gtest/gtest.h>
#include <string_view>

#include "models/layer_memory.h"
#include "models/layer_parameters.h"
#include "models/layer_work.h"
#include "tests/models/shapes.h"

namespace pipesim::layer_parts_test {
namespace {

using testing::deepseek_v3;
using testing::kept;
using testing::llama3_70b;
using testing::mixtral;

LayerContext sequence(int length, int tensor = 1) {
  LayerContext context;
  context.seq_length = length;
  context.tensor = tensor;
  context.sequence_parallel = tensor > 1;
  return context;
}

double forward(const Transformer& model, LayerKind kind, const LayerContext& context) {
  return flops(layer_work(model, kind, PassKind::kF, context)).value();
}

double backward(const Transformer& model, LayerKind kind, const LayerContext& context) {
  return (flops(layer_work(model, kind, PassKind::kB, context)) +
          flops(layer_work(model, kind, PassKind::kW, context)))
      .value();
}

// DeepSeek-V3.2: 64 heads of 128 find 2048 tokens.
Transformer with_indexer() {
  Transformer model = deepseek_v3();
  model.sparse = SparseAttention{.num_heads = 64, .head_size = 128, .topk = 2048};
  model.layer_pattern = "S";
  return model;
}

TEST(SparseAttention, HasAnIndexerThatEveryRankHoldsWhole) {
  const Transformer model = with_indexer();
  EXPECT_EQ(fault_of(model), "");
  const double indexer = 1536.0 * 64 * 128 + 7168.0 * (128 + 64) + 2 * 128;
  EXPECT_DOUBLE_EQ(
      parameters(model, LayerKind::kSparseMoe) - parameters(deepseek_v3(), LayerKind::kMoe),
      indexer);
  const WeightDivision eight{.tensor = 8};
  EXPECT_DOUBLE_EQ(layer_parameters(model, LayerKind::kSparseDense, eight).dense -
                       layer_parameters(deepseek_v3(), LayerKind::kDense, eight).dense,
                   indexer);
  // Layers of T take the tokens of the layer before.
  EXPECT_DOUBLE_EQ(parameters(model, LayerKind::kFoundMoe),
                   parameters(deepseek_v3(), LayerKind::kMoe));
}

TEST(SparseAttention, ScoresAllTokensAndAttendsToTheBest) {
  const Transformer model = with_indexer();
  const double s = 32768;
  const LayerContext context = sequence(32768);
  const Work work = layer_work(model, LayerKind::kSparseDense, PassKind::kF, context);
  ASSERT_EQ(work.attention.size(), 2U);
  EXPECT_DOUBLE_EQ(work.attention[0].flops.value(), 2 * (s * s / 2) * 64 * 128);
  // In the latent space: a key of 512 and 64, its first 512 the value.
  const double pairs = 2048 * s - 2048.0 * 2048 / 2;
  EXPECT_DOUBLE_EQ(work.attention[1].flops.value(), 2 * pairs * 128 * (576 + 512));
  // Each query gathers its keys; queries and outputs come beside.
  EXPECT_DOUBLE_EQ(work.attention[1].moved.value(), 2 * (pairs * 576 + s * 128 * (576 + 512)));
  const Work found = layer_work(model, LayerKind::kFoundDense, PassKind::kF, context);
  ASSERT_EQ(found.attention.size(), 1U);
  EXPECT_EQ(found.attention[0].flops, work.attention[1].flops);
  const double projections = 2 * s * (1536.0 * 64 * 128 + 7168.0 * (128 + 64));
  EXPECT_NEAR(forward(model, LayerKind::kSparseDense, context) -
                  forward(model, LayerKind::kFoundDense, context),
              projections + work.attention[0].flops.value(), 1e6);
  EXPECT_NEAR(backward(model, LayerKind::kSparseDense, context) -
                  backward(model, LayerKind::kFoundDense, context),
              2 * (projections + work.attention[0].flops.value()), 1e6);
}

TEST(SparseAttention, SeesAllOfAShortSequence) {
  const Transformer model = with_indexer();
  EXPECT_DOUBLE_EQ(mean_keys(model, Mixer::kSparse, 1024, true), 512);
  EXPECT_DOUBLE_EQ(mean_keys(model, Mixer::kFound, 4096, true), 2048 - 2048.0 * 2048 / 8192);
}

TEST(SparseAttention, KeepsWhatTheIndexerFound) {
  const Transformer model = with_indexer();
  const LayerContext context = sequence(4096);
  const double indexer = 4096.0 * (2 * (65 * 128 + 64) + 4 * 2048);
  EXPECT_DOUBLE_EQ(
      kept(model, LayerKind::kSparseDense, context) - kept(model, LayerKind::kFoundDense, context),
      indexer);
  // Queries and outputs in the latent space, in the place of keys and values.
  EXPECT_DOUBLE_EQ(kept(model, LayerKind::kFoundDense, context) -
                       kept(deepseek_v3(), LayerKind::kDense, context),
                   2 * 4096.0 * 128 * (576 + 512 - 192 - 128));
}

TEST(SparseAttention, OfPlainHeadsGathersTheirKeysAndValues) {
  Transformer model = llama3_70b();
  model.sparse = SparseAttention{.num_heads = 4, .head_size = 128, .topk = 2048};
  model.layer_pattern = "GS";
  const double pairs = 2048.0 * 8192 - 2048.0 * 2048 / 2;
  const Work work = layer_work(model, LayerKind::kSparseDense, PassKind::kF, sequence(8192));
  EXPECT_DOUBLE_EQ(work.attention[1].flops.value(), 2 * pairs * 64 * 256);
  EXPECT_DOUBLE_EQ(work.attention[1].moved.value(), 2 * (pairs * 8 * 256 + 8192.0 * 64 * 256));
}

// A layer W of a model is one of the model that has its heads everywhere.
TEST(WindowHeads, AreThoseOfAModelThatHasThemInAllLayers) {
  Transformer model = llama3_70b();
  model.layer_pattern = "WG";
  model.attention_window = 512;
  Transformer all = model;
  model.window_heads = WindowHeads{96, 16, 192, 128};
  all.num_attention_heads = 96;
  all.num_query_groups = 16;
  all.kv_channels = 192;
  all.v_channels = 128;
  EXPECT_EQ(fault_of(model), "");
  const LayerContext context = sequence(4096, 8);
  const LayerKind window = LayerKind::kWindowDense;
  EXPECT_DOUBLE_EQ(parameters(model, window), parameters(all, window));
  EXPECT_DOUBLE_EQ(kept(model, window, context), kept(all, window, context));
  EXPECT_DOUBLE_EQ(forward(model, window, context), forward(all, window, context));
  EXPECT_DOUBLE_EQ(backward(model, window, context), backward(all, window, context));
  EXPECT_DOUBLE_EQ(parameters(model, LayerKind::kDense),
                   parameters(llama3_70b(), LayerKind::kDense));
  model.window_heads->num_query_groups = 7;
  EXPECT_NE(fault_of(model), "");
  model.window_heads->num_query_groups = 4;
  EXPECT_NE(fault_of(model, context).find("window_attention.num_query_groups 4"),
            std::string::npos);
}

TEST(WindowHeads, DivideAmongContextRanksByTheirOwnNumber) {
  Transformer model = llama3_70b();
  model.layer_pattern = "WG";
  model.attention_window = 512;
  model.window_heads = WindowHeads{64, 4, 128, 128};
  LayerContext context = sequence(4096);
  context.context = 8;
  context.exchange = ContextExchange::kHeads;
  const std::string fault = fault_of(model, context);
  EXPECT_EQ(fault.find("window_attention.num_query_groups 4 does not divide"), 0) << fault;
  context.window_exchange = ContextExchange::kAllGather;
  EXPECT_EQ(fault_of(model, context), "");
  std::swap(context.exchange, *context.window_exchange);
  EXPECT_EQ(fault_of(model, context), fault);
}

TEST(ValueHeads, HaveASizeOfTheirOwn) {
  Transformer model = llama3_70b();
  model.v_channels = 64;
  const double h = 8192;
  EXPECT_DOUBLE_EQ(
      parameters(llama3_70b(), LayerKind::kDense) - parameters(model, LayerKind::kDense),
      h * 64 * (8 + 64));
  const double s = 4096;
  const Work work = layer_work(model, LayerKind::kDense, PassKind::kF, sequence(4096));
  EXPECT_DOUBLE_EQ(work.attention[0].flops.value(), s * s * 64 * (128 + 64));
}

TEST(ValueHeads, MayBeTheKeys) {
  Transformer model = llama3_70b();
  model.values_are_keys = true;
  const double matrix = 8192.0 * 8 * 128;
  EXPECT_DOUBLE_EQ(
      parameters(llama3_70b(), LayerKind::kDense) - parameters(model, LayerKind::kDense), matrix);
  const LayerContext context = sequence(4096);
  EXPECT_DOUBLE_EQ(forward(llama3_70b(), LayerKind::kDense, context) -
                       forward(model, LayerKind::kDense, context),
                   2 * 4096 * matrix);
}

// Nemotron 3 Super: 512 experts of 2688 in a space of 1024.
TEST(LatentExperts, WorkAndAreSentInTheirSpace) {
  Transformer plain = mixtral();
  Transformer latent = plain;
  latent.experts->latent_size = 1024;
  const double h = 4096;
  const double ways = 2 * h * 1024;
  const double experts = 8.0 * 3 * 14336;
  EXPECT_DOUBLE_EQ(parameters(plain, LayerKind::kMoe) - parameters(latent, LayerKind::kMoe),
                   experts * (h - 1024) - ways);
  LayerContext context = sequence(4096);
  context.expert = 8;
  const double rows = 2.0 * 4096;
  EXPECT_NEAR(forward(plain, LayerKind::kMoe, context) - forward(latent, LayerKind::kMoe, context),
              2 * (rows * 3 * 14336 * (h - 1024) - 4096 * ways), 1e6);
  const auto sent = [&context](const Transformer& model) {
    const Work work = layer_work(model, LayerKind::kMoe, PassKind::kF, context);
    const auto all =
        std::ranges::find(work.collectives, CollectiveKind::kAllToAll, &Collective::kind);
    return all->bytes.value();
  };
  EXPECT_DOUBLE_EQ(sent(latent) / sent(plain), 1024 / h);
  // Inputs of the experts are narrower, and those of the way out come beside.
  EXPECT_DOUBLE_EQ(kept(plain, LayerKind::kMoe, context) - kept(latent, LayerKind::kMoe, context),
                   2 * (rows * (h - 1024) - 4096 * 1024.0));
}

TEST(PaddedExperts, ComputeAndAreSentWhatBalancedOnesAreTimesTheFactor) {
  const Transformer plain = mixtral();
  Transformer padded = plain;
  padded.experts->capacity_factor = 1.5;
  LayerContext context = sequence(4096);
  context.expert = 8;
  const double rows = 2.0 * 4096;
  EXPECT_NEAR(forward(padded, LayerKind::kMoe, context) - forward(plain, LayerKind::kMoe, context),
              0.5 * 2 * rows * 3 * 4096 * 14336, 1e6);
  const auto sent = [&context](const Transformer& model) {
    const Work work = layer_work(model, LayerKind::kMoe, PassKind::kF, context);
    const auto all =
        std::ranges::find(work.collectives, CollectiveKind::kAllToAll, &Collective::kind);
    return all->bytes.value();
  };
  EXPECT_DOUBLE_EQ(sent(padded) / sent(plain), 1.5);
  EXPECT_GT(kept(padded, LayerKind::kMoe, context), kept(plain, LayerKind::kMoe, context));
  EXPECT_EQ(model_flops(padded, 4096, true), model_flops(plain, 4096, true));
}

TEST(Projectors, OfSeveralLayersAreCountedEach) {
  Transformer model = llama3_70b();
  model.encoder = Encoder{.num_layers = 2,
                          .hidden_size = 1024,
                          .num_attention_heads = 16,
                          .ffn_hidden_size = 4096,
                          .inputs = 588,
                          .patches = 1024,
                          .merged = 4,
                          .projector_size = 4096};
  Transformer four = model;
  four.encoder->projectors = 4;
  const double one = 4096.0 * (4 * 1024 + 8192);
  EXPECT_DOUBLE_EQ(total_parameters(four) - total_parameters(model), 3 * one);
  const LayerContext context = sequence(4096);
  EXPECT_DOUBLE_EQ(forward(four, LayerKind::kEmbedding, context) -
                       forward(model, LayerKind::kEmbedding, context),
                   3 * 2 * 256 * one);
}

}  // namespace
}  // namespace pipesim::layer_parts_test
