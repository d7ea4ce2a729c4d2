// Kinds of layers beside plain attention over all tokens: what each computes, moves and keeps.
#include <cmath>
#include <gtest/gtest.h>

#include "models/collective.h"
#include "models/layer_memory.h"
#include "models/layer_parameters.h"
#include "models/layer_work.h"
#include "models/layout.h"
#include "models/memory_model.h"
#include "tests/models/shapes.h"

namespace pipesim::layer_kinds_test {
namespace {

using testing::deepseek_v3;
using testing::kept;
using testing::llama3_70b;
using testing::mixtral;

LayerContext fused(int batch, int seq, int tensor = 1) {
  LayerContext context;
  context.micro_batch_size = batch;
  context.seq_length = seq;
  context.tensor = tensor;
  context.sequence_parallel = tensor > 1;
  return context;
}

Transformer windowed(int window, bool chunked) {
  Transformer model = llama3_70b();
  model.layer_pattern = "WG";
  model.attention_window = window;
  model.chunked_window = chunked;
  return model;
}

// 4 layers of 16 heads of values of 128, 8 of keys of 64, hidden size 1024.
Transformer with_states(LinearAttention::Kind kind) {
  Transformer model = llama3_70b();
  model.num_layers = 4;
  model.hidden_size = 1024;
  model.num_attention_heads = 8;
  model.ffn_hidden_size = 2048;
  model.layer_pattern = "RRRG";
  model.linear = LinearAttention{.kind = kind,
                                 .num_heads = 16,
                                 .head_size = 128,
                                 .key_heads = 8,
                                 .key_head_size = 64,
                                 .conv_kernel = 4,
                                 .chunk_size = 64};
  return model;
}

double attention_flops(const Transformer& model, LayerKind kind, PassKind pass,
                       const LayerContext& context) {
  return layer_work(model, kind, pass, context).attention[0].flops.value();
}

TEST(LayerKinds, FollowFromTheLettersOfThePattern) {
  Transformer model = deepseek_v3();
  model.latent.reset();
  model.num_query_groups = 128;
  model.kv_channels = 128;
  model.layer_pattern = "WRGCM*-E";
  model.attention_window = 512;
  model.linear = with_states(LinearAttention::Kind::kGatedDelta).linear;
  EXPECT_EQ(fault_of(model), "");
  EXPECT_EQ(layer_kind(model, 0), LayerKind::kWindowDense);
  EXPECT_EQ(layer_kind(model, 3), LayerKind::kSharedKeysMoe);
  EXPECT_EQ(layer_kind(model, 4), LayerKind::kLinearAlone);
  EXPECT_EQ(layer_kind(model, 5), LayerKind::kAttentionAlone);
  EXPECT_EQ(layer_kind(model, 6), LayerKind::kMlpAlone);
  EXPECT_EQ(layer_kind(model, 7), LayerKind::kExpertsAlone);
  EXPECT_EQ(layer_kind(model, 8), LayerKind::kWindowMoe);
  int all = 0;
  for (const int number : count_layers(model, 0, model.num_layers)) all += number;
  EXPECT_EQ(all, model.num_layers);
  // C and E of the first eight, five of each eight that follow, four of the last five.
  EXPECT_EQ(moe_layers(model), 2 + 6 * 5 + 4);
}

TEST(LayerKinds, OfExpertsInEverySecondLayerAlternate) {
  Transformer model = mixtral();
  model.experts->first_dense_layers = 1;
  model.experts->every = 2;
  EXPECT_EQ(layer_kind(model, 0), LayerKind::kDense);
  EXPECT_EQ(layer_kind(model, 1), LayerKind::kMoe);
  EXPECT_EQ(layer_kind(model, 2), LayerKind::kDense);
  EXPECT_EQ(moe_layers(model), 16);
  EXPECT_DOUBLE_EQ(
      total_parameters(mixtral()) - total_parameters(model),
      16 * (parameters(model, LayerKind::kMoe) - parameters(model, LayerKind::kDense)));
}

TEST(LayerKinds, MayEndInLayersWithoutExperts) {
  Transformer model = mixtral();
  model.experts->first_dense_layers = 4;
  model.experts->last_dense_layers = 1;
  EXPECT_EQ(fault_of(model), "");
  EXPECT_EQ(layer_kind(model, 30), LayerKind::kMoe);
  EXPECT_EQ(layer_kind(model, 31), LayerKind::kDense);
  EXPECT_EQ(moe_layers(model), 27);
  model.mtp_layers = 1;
  EXPECT_EQ(mtp_layer_kind(model), LayerKind::kMoe);
  model.experts->last_dense_layers = 29;
  EXPECT_EQ(fault_of(model), "4 first and 29 last dense layers, but only 32 layers");
}

TEST(LayerKinds, SayWhatAPatternLacks) {
  Transformer model = llama3_70b();
  model.layer_pattern = "WG";
  EXPECT_EQ(fault_of(model), "W in layer_pattern needs attention_window");
  model.layer_pattern = "GZ";
  EXPECT_EQ(fault_of(model), "layer_pattern knows the letters GWRCSTHYXM*-E and a to p, not 'Z'");
  model.layer_pattern = "R";
  EXPECT_EQ(fault_of(model), "R, M and H in layer_pattern need linear_attention");
  model.layer_pattern.clear();
  model.attention_window = 8;
  EXPECT_NE(fault_of(model).find("needs a layer_pattern with W"), std::string::npos);
}

TEST(Window, TakesTheScoresOfItsTokens) {
  const LayerContext context = fused(1, 8192);
  const double all = attention_flops(llama3_70b(), LayerKind::kDense, PassKind::kF, context);
  const auto share = [&](int window, bool chunked) {
    return attention_flops(windowed(window, chunked), LayerKind::kWindowDense, PassKind::kF,
                           context) /
           all;
  };
  // Token i sees the last w: w - w^2 / 2s in the mean; in chunks half a chunk. All is s / 2.
  EXPECT_DOUBLE_EQ(share(1024, false), (1024 - 1024.0 * 1024 / (2 * 8192)) / 4096);
  EXPECT_DOUBLE_EQ(share(1024, true), 512.0 / 4096);
  EXPECT_DOUBLE_EQ(share(8192, false), 1);
  EXPECT_DOUBLE_EQ(share(100000, true), 1);
  // 3000, 3000 and what is left, 2192.
  EXPECT_DOUBLE_EQ(share(3000, true), (2 * 3000.0 * 3000 + 2192.0 * 2192) / (8192.0 * 8192));
  // Nothing changes for the model's other layers, nor for bytes that all layers keep.
  EXPECT_DOUBLE_EQ(attention_flops(windowed(1024, false), LayerKind::kDense, PassKind::kF, context),
                   all);
  EXPECT_DOUBLE_EQ(kept(windowed(1024, false), LayerKind::kWindowDense, context),
                   kept(llama3_70b(), LayerKind::kDense, context));
}

TEST(Window, IsCountedInTheModelsFlops) {
  const Transformer model = windowed(1024, false);
  const double all = model_flops(llama3_70b(), 8192, true).value();
  const LayerContext context = fused(1, 8192);
  const double saved = attention_flops(model, LayerKind::kDense, PassKind::kF, context) -
                       attention_flops(model, LayerKind::kWindowDense, PassKind::kF, context);
  EXPECT_NEAR(model_flops(model, 8192, true).value(), all - 3 * 40 * saved, 1e-9 * all);
}

// Scores that attention without a fused kernel makes are masked, not left out.
TEST(Window, SavesNothingWithoutAFusedKernel) {
  LayerContext context = fused(1, 2048);
  context.flash_attention = false;
  EXPECT_EQ(flops(layer_work(windowed(64, false), LayerKind::kWindowDense, PassKind::kF, context)),
            flops(layer_work(llama3_70b(), LayerKind::kDense, PassKind::kF, context)));
}

TEST(LinearAttention, GrowsWithTheSequenceAndNotWithItsSquare) {
  using Kind = LinearAttention::Kind;
  for (const Kind kind : {Kind::kGatedDelta, Kind::kLightning, Kind::kMamba2}) {
    const Transformer model = with_states(kind);
    for (const PassKind pass : {PassKind::kF, PassKind::kB}) {
      const Work one = layer_work(model, LayerKind::kLinearDense, pass, fused(1, 4096));
      const Work two = layer_work(model, LayerKind::kLinearDense, pass, fused(1, 8192));
      EXPECT_DOUBLE_EQ(flops(two).value(), 2 * flops(one).value());
      EXPECT_DOUBLE_EQ(two.attention[0].moved.value(), 2 * one.attention[0].moved.value());
    }
    EXPECT_DOUBLE_EQ(kept(model, LayerKind::kLinearDense, fused(1, 8192)),
                     2 * kept(model, LayerKind::kLinearDense, fused(1, 4096)));
  }
}

// A token and head, with chunks of c and states of k x v: 2 c k + 2 c v + 4 k v.
TEST(LinearAttention, TakesTheFlopsOfItsChunksAndStates) {
  using Kind = LinearAttention::Kind;
  const LayerContext context = fused(2, 1024);
  const double tokens = 2 * 1024;
  const auto of = [&](Kind kind, PassKind pass) {
    return attention_flops(with_states(kind), LayerKind::kLinearDense, pass, context) / tokens;
  };
  const double c = 64, k = 64, v = 128, heads = 16, groups = 8;
  const double lightning = heads * (2 * c * k + 2 * c * v + 4 * k * v);
  EXPECT_DOUBLE_EQ(of(Kind::kLightning, PassKind::kF), lightning);
  // Heads of a group share their scores.
  const double mamba = groups * 2 * c * k + heads * (2 * c * v + 4 * k * v);
  EXPECT_DOUBLE_EQ(of(Kind::kMamba2, PassKind::kF), mamba);
  // Scores among keys, what each token adds, and the state read once more.
  const double delta = lightning + heads * (2 * c * k + 2 * c * (k + v) + 2 * k * v);
  EXPECT_DOUBLE_EQ(of(Kind::kGatedDelta, PassKind::kF), delta);
  // Backward: two for each, and scores and states again.
  EXPECT_DOUBLE_EQ(of(Kind::kLightning, PassKind::kB),
                   2 * lightning + heads * (2 * c * k + 2 * k * v));
  EXPECT_DOUBLE_EQ(of(Kind::kGatedDelta, PassKind::kB),
                   2 * delta + heads * (2 * 2 * c * k + 2 * k * v));
}

TEST(LinearAttention, KeepsAndReadsWhatItsKernelsRead) {
  const Transformer model = with_states(LinearAttention::Kind::kLightning);
  const LayerContext context = fused(1, 1024);
  // In and out: queries and keys of 512 each, values and outputs of 2048; a state of 64 x 128 for
  // each head and chunk, in fp32, written and read.
  const Work forward = layer_work(model, LayerKind::kLinearDense, PassKind::kF, context);
  EXPECT_DOUBLE_EQ(forward.attention[0].moved.value(),
                   1024 * (2 * 512 + 2 * 2048) * 2.0 + 2 * (1024 / 64) * 16 * 64 * 128 * 4.0);
  const double mlp = kept(llama3_70b(), LayerKind::kDense, context);
  EXPECT_GT(mlp, 0);
  double bytes = 0;
  for (const KeptTensor& tensor : kept_tensors(model, LayerKind::kLinearAlone, context)) {
    if (tensor.kept != Kept::kFromB) bytes += tensor.bytes.value();
  }
  // Inputs of norm and projection, of the convolution, its output, gate, output before and after
  // its norm; lightning attention has no numbers a head.
  const double tokens = 1024 * 2;
  EXPECT_DOUBLE_EQ(bytes, tokens * (2 * 1024 + 2 * (2048 + 2 * 512) + 3 * 2048));
}

TEST(LinearAttention, IsDividedOverTensorRanks) {
  const Transformer model = with_states(LinearAttention::Kind::kMamba2);
  const LayerContext one = fused(1, 4096);
  const LayerContext four = fused(1, 4096, 4);
  for (const PassKind pass : {PassKind::kF, PassKind::kB, PassKind::kW}) {
    EXPECT_DOUBLE_EQ(4 * flops(layer_work(model, LayerKind::kLinearAlone, pass, four)).value(),
                     flops(layer_work(model, LayerKind::kLinearAlone, pass, one)).value());
  }
  LayerContext many = fused(1, 4096, 16);
  many.sequence_parallel = true;
  EXPECT_EQ(fault_of(model, many),
            "num_attention_heads 8 does not divide by tensor_model_parallel_size 16");
  LayerContext parts = fused(1, 4096);
  parts.context = 2;
  EXPECT_NE(fault_of(model, parts).find("context parallelism of linear attention"),
            std::string::npos);
}

TEST(SharedKeys, ComputeAndKeepNone) {
  Transformer model = llama3_70b();
  model.layer_pattern = "GC";
  const LayerContext context = fused(1, 4096);
  const double width = 2 * 8 * 128;  // keys and values
  const Work own = layer_work(model, LayerKind::kDense, PassKind::kF, context);
  const Work none = layer_work(model, LayerKind::kSharedKeysDense, PassKind::kF, context);
  EXPECT_DOUBLE_EQ(flops(own).value() - flops(none).value(), 2.0 * 4096 * 8192 * width);
  EXPECT_EQ(own.attention[0].flops, none.attention[0].flops);
  EXPECT_DOUBLE_EQ(
      kept(model, LayerKind::kDense, context) - kept(model, LayerKind::kSharedKeysDense, context),
      4096 * width * 2);
  EXPECT_DOUBLE_EQ(
      parameters(model, LayerKind::kDense) - parameters(model, LayerKind::kSharedKeysDense),
      8192 * width);
}

TEST(OutputGate, DoublesTheProjectionOfQueriesAndKeepsTwoMore) {
  Transformer gated = llama3_70b();
  gated.output_gate = true;
  const LayerContext context = fused(1, 4096);
  const double width = 64 * 128;
  EXPECT_DOUBLE_EQ(
      flops(layer_work(gated, LayerKind::kDense, PassKind::kF, context)).value() -
          flops(layer_work(llama3_70b(), LayerKind::kDense, PassKind::kF, context)).value(),
      2.0 * 4096 * 8192 * width);
  EXPECT_DOUBLE_EQ(
      kept(gated, LayerKind::kDense, context) - kept(llama3_70b(), LayerKind::kDense, context),
      2 * 4096 * width * 2);
}

TEST(Rotary, MovesTheTurnedPartOfHeadsAlone) {
  const LayerContext context = fused(1, 4096);
  const auto moved = [&](const Transformer& model, LayerKind kind) {
    return layer_work(model, kind, PassKind::kF, context).moved.value();
  };
  const double whole = moved(llama3_70b(), LayerKind::kDense);
  const double turned = 2.0 * 4096 * (64 + 8) * 128 * 2;
  Transformer model = llama3_70b();
  model.rotary_percent = 0.25;
  EXPECT_DOUBLE_EQ(moved(model, LayerKind::kDense), whole - 0.75 * turned);
  model = windowed(1024, true);
  model.rotary_in_windows_only = true;
  EXPECT_DOUBLE_EQ(moved(model, LayerKind::kDense), whole - turned);
  EXPECT_DOUBLE_EQ(moved(model, LayerKind::kWindowDense), whole);
}

TEST(SingleParts, ComputeTogetherWhatALayerDoes) {
  const Transformer model = mixtral();
  const LayerContext context = fused(1, 4096);
  for (const PassKind pass : {PassKind::kF, PassKind::kB, PassKind::kW}) {
    const auto of = [&](LayerKind kind) { return layer_work(model, kind, pass, context); };
    EXPECT_DOUBLE_EQ(
        flops(of(LayerKind::kAttentionAlone)).value() + flops(of(LayerKind::kExpertsAlone)).value(),
        flops(of(LayerKind::kMoe)).value());
    EXPECT_EQ(of(LayerKind::kAttentionAlone).moved + of(LayerKind::kMlpAlone).moved,
              of(LayerKind::kDense).moved);
  }
  EXPECT_DOUBLE_EQ(
      kept(model, LayerKind::kAttentionAlone, context) + kept(model, LayerKind::kMlpAlone, context),
      kept(model, LayerKind::kDense, context));
}

// DeepSeek-V3: experts in 8 groups, a token's in 4 of them (arXiv 2412.19437, section 2.1.2).
TEST(NodeLimitedRouting, SendsATokenToFewerNodes) {
  Transformer model = deepseek_v3();
  LayerContext context = fused(1, 4096);
  context.expert = 8;
  context.flex_dispatcher = true;
  const auto sent = [&] {
    return layer_work(model, LayerKind::kMoe, PassKind::kF, context).collectives[0];
  };
  Interconnect wires;
  wires.gpus_per_node = 1;
  wires.nics_per_node = 1;
  wires.nic_bandwidth = BytesPerSecond(50e9);
  const GroupShape eight_nodes{8, 1};
  const Seconds free = collective_seconds(wires, sent(), eight_nodes);
  model.experts->groups = 8;
  model.experts->groups_per_token = 4;
  const Seconds limited = collective_seconds(wires, sent(), eight_nodes);
  // 8 experts are on 5.25 of 8 nodes in the mean, on 3.6 of 4; 7 of 8 are elsewhere.
  const double distinct = 8 * (1 - std::pow(7.0 / 8, 8));
  const double fewer = 4 * (1 - std::pow(3.0 / 4, 8));
  EXPECT_NEAR(limited / free, fewer / distinct, 1e-9);
}

Transformer with_encoder() {
  Transformer model = llama3_70b();
  model.encoder = Encoder{.num_layers = 24,
                          .hidden_size = 1024,
                          .num_attention_heads = 16,
                          .ffn_hidden_size = 4096,
                          .inputs = 588,
                          .patches = 576,
                          .images = 2,
                          .merged = 4};
  return model;
}

TEST(Encoder, RunsItsOwnTokensAtItsOwnWidth) {
  const Transformer model = with_encoder();
  const LayerContext context = fused(3, 4096);
  const Work layer = layer_work(model, LayerKind::kEncoder, PassKind::kF, context);
  const double tokens = 3 * 2 * 576;
  // 24 b s h^2 + 4 b s^2 h of a GPT layer, nothing masked.
  EXPECT_DOUBLE_EQ(flops(layer).value(), 24 * tokens * 1024 * 1024 + 4 * tokens * 576 * 1024);
  // Patches in, and one matrix from four of them to a token.
  const Work ends = layer_work(model, LayerKind::kEmbedding, PassKind::kF, context);
  EXPECT_DOUBLE_EQ(flops(ends).value(), 2 * tokens * 588 * 1024 + 2 * tokens / 4 * 4096 * 8192);
  const Transformer text = llama3_70b();
  EXPECT_DOUBLE_EQ(
      total_parameters(model) - total_parameters(text),
      24 * (12 * 1024.0 * 1024 + 13 * 1024) + 1024.0 * (588 + 576 + 2) + 4096.0 * 8192);
}

TEST(Encoder, StandsOnTheStageOfTheEmbeddingWhichMayHaveNoOtherLayers) {
  const Transformer model = with_encoder();
  const std::vector<int> stages{0, 40, 40};
  const Layout layout = listed_layout(model, stages);
  EXPECT_EQ(count_layers(model, layout.stages[0])[LayerKind::kEncoder], 24);
  EXPECT_EQ(count_layers(model, layout.stages[0])[LayerKind::kDense], 0);
  EXPECT_EQ(count_layers(model, layout.stages[1])[LayerKind::kEncoder], 0);
  const LayerContext context = fused(1, 4096);
  const ParameterState state;
  const MemoryModel memory(model, context, state);
  EXPECT_DOUBLE_EQ(memory.device({&layout.stages[0], 1}).weights.value(),
                   24 * layer_memory(model, LayerKind::kEncoder, context).weights.value());
  // Under full recompute a layer keeps its input, of its own width.
  EXPECT_DOUBLE_EQ(layer_memory(model, LayerKind::kEncoder, context).checkpoint.value(),
                   2 * 576 * 1024 * 2);
}

TEST(Encoder, SaysWhenItsTokensDoNotFit) {
  EXPECT_EQ(fault_of(with_encoder(), fused(1, 256)),
            "288 tokens of images do not go into seq_length 256");
}

TEST(Balance, WeighsLayersOfAPatternAsTheirMean) {
  Transformer model = llama3_70b();
  model.num_layers = 8;
  model.layer_pattern = "WG";
  model.attention_window = 64;
  EnumArray<LayerKind, Seconds> of{};
  of[LayerKind::kDense] = Seconds(3);
  of[LayerKind::kWindowDense] = Seconds(1);
  const LayerSeconds seconds = layer_seconds(model, of);
  EXPECT_EQ(seconds.dense, Seconds(2));
  const Layout layout = balance(model, 4, seconds);
  for (const StageLayers& stage : layout.stages) EXPECT_EQ(stage.layers, 2);
}

}  // namespace
}  // namespace pipesim::layer_kinds_test
