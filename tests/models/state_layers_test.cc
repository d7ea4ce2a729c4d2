// Layers of Mamba-1, of Kimi's delta attention and of short convolutions, attention beside Mamba-2.
#include <gtest/gtest.h>

#include "models/layer_memory.h"
#include "models/layer_parameters.h"
#include "models/layer_work.h"
#include "tests/models/shapes.h"

namespace pipesim::state_layers_test {
namespace {

using testing::deepseek_v3;
using testing::kept;
using testing::llama3_70b;
using testing::sequence;

double flops_of(const Transformer& model, LayerKind kind, PassKind pass,
                const LayerContext& context) {
  return flops(layer_work(model, kind, pass, context)).value();
}

constexpr double kHidden = 1024;
constexpr double kChannels = 2048;
constexpr double kState = 16;
constexpr double kRank = 64;

// A layer by itself, whose hidden size is 1024.
Transformer alone(const LinearAttention& linear) {
  Transformer model = llama3_70b();
  model.num_layers = 4;
  model.hidden_size = 1024;
  model.num_attention_heads = 8;
  model.layer_pattern = "M";
  model.linear = linear;
  return model;
}

Transformer mamba1() {
  return alone({.kind = LinearAttention::Kind::kMamba1,
                .num_heads = 2048,
                .head_size = 1,
                .key_heads = 1,
                .key_head_size = 16,
                .conv_kernel = 4,
                .chunk_size = 512,
                .step_rank = 64});
}

Transformer kda(int gate_rank) {
  return alone({.kind = LinearAttention::Kind::kKda,
                .num_heads = 8,
                .head_size = 128,
                .key_heads = 8,
                .key_head_size = 128,
                .conv_kernel = 4,
                .chunk_size = 64,
                .step_rank = 128,
                .gate_rank = gate_rank});
}

TEST(Mamba1, HasStepsAndStatesOfItsChannels) {
  EXPECT_EQ(fault_of(mamba1()), "");
  // In, convolution with a bias, what makes steps and states, steps with a bias. Decays and the
  // input that passes by, out, the norm in front.
  const double expected = kHidden * 2 * kChannels + kChannels * 5 +
                          kChannels * (kRank + 2 * kState) + (kRank + 1) * kChannels +
                          kChannels * (kState + 1) + kChannels * kHidden + kHidden;
  EXPECT_DOUBLE_EQ(parameters(mamba1(), LayerKind::kLinearAlone), expected);
}

TEST(Mamba1, ScansOutsideOfMatmulUnits) {
  const LayerContext context = sequence(4096);
  const double matrices = kHidden * 2 * kChannels + kChannels * (kRank + 2 * kState) +
                          kRank * kChannels + kChannels * kHidden;
  const double scan = 9 * kChannels * kState;
  EXPECT_DOUBLE_EQ(flops_of(mamba1(), LayerKind::kLinearAlone, PassKind::kF, context),
                   4096 * (2 * matrices + scan));
  EXPECT_DOUBLE_EQ(flops_of(mamba1(), LayerKind::kLinearAlone, PassKind::kB, context),
                   4096 * (2 * matrices + 3 * scan));
  EXPECT_DOUBLE_EQ(flops_of(mamba1(), LayerKind::kLinearAlone, PassKind::kW, context),
                   4096 * 2 * matrices);
  const Work work = layer_work(mamba1(), LayerKind::kLinearAlone, PassKind::kF, context);
  ASSERT_EQ(work.attention.size(), 1U);
  EXPECT_EQ(work.attention[0].precision, Precision::kFp32);
  // Channels, steps and outputs; what states take and give; a state each 512 tokens, in and out.
  EXPECT_DOUBLE_EQ(work.attention[0].moved.value(), 4096 * 2 * (3 * kChannels + 2 * kState) +
                                                        2 * (4096 / 512) * kChannels * kState * 4);
}

TEST(Mamba1, KeepsChannelsAndStepsButNoStates) {
  const double numbers = 2 * kHidden +       // inputs of norm and projection
                         kChannels * 3 +     // input of the convolution, channels, steps
                         kRank + 2 * kState  // compressed
                         + kChannels * 3;    // gate, output before and after it
  EXPECT_DOUBLE_EQ(kept(mamba1(), LayerKind::kLinearAlone, sequence(4096)), 4096 * 2 * numbers);
}

TEST(Mamba1, IsDividedByItsChannels) {
  const LayerContext four = sequence(4096, 4);
  EXPECT_EQ(fault_of(mamba1(), four), "");
  for (const PassKind pass : {PassKind::kF, PassKind::kB, PassKind::kW}) {
    EXPECT_DOUBLE_EQ(4 * flops_of(mamba1(), LayerKind::kLinearAlone, pass, four),
                     flops_of(mamba1(), LayerKind::kLinearAlone, pass, sequence(4096)));
  }
  // Ranks add up what makes their steps, beside attention's output.
  const Work forward = layer_work(mamba1(), LayerKind::kLinearAlone, PassKind::kF, four);
  ASSERT_EQ(forward.collectives.size(), 2U);
  EXPECT_DOUBLE_EQ(forward.collectives[0].bytes.value(), 4096 * 2 * (kRank + 2 * kState));
  EXPECT_NE(fault_of(mamba1(), sequence(4096, 3)).find("does not divide"), std::string::npos);
}

TEST(KimiDelta, HasDecaysOfEveryChannel) {
  EXPECT_EQ(fault_of(kda(0)), "");
  const double width = 1024;  // of queries, keys, values and gate
  const double gate = kHidden * width;
  const double rest = kHidden * (3 * width + 8) + 4 * 3 * width + kHidden * 128 + 128 * width +
                      width + 8 + 128 + width * kHidden + kHidden;
  EXPECT_DOUBLE_EQ(parameters(kda(0), LayerKind::kLinearAlone), rest + gate);
  EXPECT_DOUBLE_EQ(parameters(kda(128), LayerKind::kLinearAlone),
                   rest + kHidden * 128 + 128 * width);
  Transformer without = kda(0);
  without.linear->step_rank = 0;
  EXPECT_EQ(fault_of(without), "mamba1 and kda need step_rank");
}

// The chunks of a gated delta rule, and decays of a rank in place of numbers a head.
TEST(KimiDelta, ComputesAsAGatedDeltaRuleOfItsHeads) {
  const LayerContext context = sequence(4096);
  Transformer delta = kda(0);
  delta.linear->kind = LinearAttention::Kind::kGatedDelta;
  const Work own = layer_work(kda(0), LayerKind::kLinearAlone, PassKind::kF, context);
  const Work other = layer_work(delta, LayerKind::kLinearAlone, PassKind::kF, context);
  EXPECT_EQ(own.attention[0].flops, other.attention[0].flops);
  EXPECT_DOUBLE_EQ(own.attention[0].moved.value() - other.attention[0].moved.value(),
                   4096.0 * 1024 * 4);
  const double decays = kHidden * 128 + 128 * 1024 - kHidden * 8;  // one number a head less
  EXPECT_DOUBLE_EQ(flops(own).value() - flops(other).value(), 2 * 4096 * decays);
  // A decay a channel in fp32 in place of one a head, and the compressed.
  EXPECT_DOUBLE_EQ(kept(kda(0), LayerKind::kLinearAlone, context) -
                       kept(delta, LayerKind::kLinearAlone, context),
                   4096 * (4.0 * (1024 - 8) + 2 * 128));
}

Transformer short_convolution() {
  return alone({.kind = LinearAttention::Kind::kShortConv,
                .num_heads = 8,
                .head_size = 128,
                .key_heads = 8,
                .key_head_size = 128,
                .conv_kernel = 3});
}

// LFM2: values and two gates in, a convolution of three tokens, out.
TEST(ShortConvolution, HasTwoMatricesAndNoStates) {
  EXPECT_EQ(fault_of(short_convolution()), "");
  const double matrices = 3 * kHidden * kHidden + kHidden * kHidden;
  EXPECT_DOUBLE_EQ(parameters(short_convolution(), LayerKind::kLinearAlone),
                   matrices + 3 * kHidden + kHidden);
  const LayerContext context = sequence(4096);
  for (const PassKind pass : {PassKind::kF, PassKind::kB, PassKind::kW}) {
    const Work work = layer_work(short_convolution(), LayerKind::kLinearAlone, pass, context);
    EXPECT_DOUBLE_EQ(flops(work).value(), 2 * 4096 * matrices) << to_text(pass);
    EXPECT_TRUE(work.attention.empty());
  }
}

TEST(ShortConvolution, ReadsAndKeepsItsGates) {
  const LayerContext context = sequence(4096);
  const double one = 4096 * kHidden * 2;
  // The norm 2, a product of two 3, the convolution 2, its gate 3, the residual 3.
  EXPECT_DOUBLE_EQ(
      layer_work(short_convolution(), LayerKind::kLinearAlone, PassKind::kF, context).moved.value(),
      (2 + 3 + 2 + 3 + 3) * one);
  // Inputs of norm and matrix, values and gates, the product, the convolution's output, its
  // product.
  EXPECT_DOUBLE_EQ(kept(short_convolution(), LayerKind::kLinearAlone, context), 8 * one);
}

TEST(ShortConvolution, IsDividedByItsHeadsButNotByItsSequence) {
  const LayerContext four = sequence(4096, 4);
  EXPECT_EQ(fault_of(short_convolution(), four), "");
  EXPECT_DOUBLE_EQ(
      4 * flops_of(short_convolution(), LayerKind::kLinearAlone, PassKind::kB, four),
      flops_of(short_convolution(), LayerKind::kLinearAlone, PassKind::kB, sequence(4096)));
  LayerContext divided = sequence(4096);
  divided.context = 2;
  EXPECT_NE(fault_of(short_convolution(), divided).find("hands its last tokens on"),
            std::string::npos);
}

// Step-3: queries of a rank that all heads share.
TEST(QueryRank, PutsTwoMatricesAndANormInPlaceOfOne) {
  const Transformer plain = llama3_70b();
  Transformer ranked = plain;
  ranked.q_rank = 2048;
  const double h = plain.hidden_size;
  const double queries = 64 * 128;
  const double more = h * 2048 + 2048 * queries - h * queries;
  EXPECT_DOUBLE_EQ(parameters(ranked, LayerKind::kDense) - parameters(plain, LayerKind::kDense),
                   more + 2048);
  const LayerContext context = sequence(4096);
  for (const PassKind pass : {PassKind::kF, PassKind::kB, PassKind::kW}) {
    EXPECT_DOUBLE_EQ(flops_of(ranked, LayerKind::kDense, pass, context) -
                         flops_of(plain, LayerKind::kDense, pass, context),
                     2 * 4096 * more)
        << to_text(pass);
  }
  EXPECT_DOUBLE_EQ(layer_work(ranked, LayerKind::kDense, PassKind::kF, context).moved.value() -
                       layer_work(plain, LayerKind::kDense, PassKind::kF, context).moved.value(),
                   2.0 * 4096 * 2048 * 2);
  EXPECT_DOUBLE_EQ(
      kept(ranked, LayerKind::kDense, context) - kept(plain, LayerKind::kDense, context),
      2.0 * 4096 * 2048 * 2);
}

// Llama-Nemotron: parts alone, of sizes of their own.
TEST(MlpSizes, AreThoseOfTheLettersOfThePattern) {
  Transformer model = llama3_70b();
  model.num_layers = 4;
  model.layer_pattern = "*-ab";
  EXPECT_EQ(fault_of(model),
            "a in layer_pattern needs as many mlp_sizes, one for each letter from a on");
  model.mlp_sizes = {14336, 7168};
  EXPECT_EQ(fault_of(model), "");
  EXPECT_EQ(layer_kind(model, 2), LayerKind::kMlpA);
  EXPECT_EQ(layer_kind(model, 3), LayerKind::kMlpB);
  const LayerContext context = sequence(4096);
  const double h = model.hidden_size;
  const double whole = parameters(model, LayerKind::kMlpAlone) - h;
  EXPECT_DOUBLE_EQ(parameters(model, LayerKind::kMlpA) - h, whole / 2);
  EXPECT_DOUBLE_EQ(parameters(model, LayerKind::kMlpB) - h, whole / 4);
  EXPECT_DOUBLE_EQ(flops_of(model, LayerKind::kMlpB, PassKind::kF, context),
                   2 * 4096 * 3 * h * 7168);
  // Two inputs, and 3 of the inner width.
  EXPECT_DOUBLE_EQ(kept(model, LayerKind::kMlpB, context), 4096 * 2 * (2 * h + 3 * 7168));
  EXPECT_DOUBLE_EQ(total_parameters(model), parameters(model, LayerKind::kAttentionAlone) +
                                                1.75 * whole + 4 * h + 2 * 128256 * h);
  EXPECT_NE(fault_of(model, sequence(4096, 3)), "");
  model.mlp_sizes = {14336, 7170};
  EXPECT_EQ(fault_of(model, sequence(4096, 4)),
            "a size of mlp_sizes, 7170 does not divide by tensor_model_parallel_size 4");
}

TEST(OutputGate, OfLatentAttentionIsAProjectionOfItsInput) {
  Transformer gated = deepseek_v3();
  gated.output_gate = true;
  const double width = 128 * 128;
  EXPECT_DOUBLE_EQ(
      parameters(gated, LayerKind::kDense) - parameters(deepseek_v3(), LayerKind::kDense),
      7168 * width);
  const LayerContext context = sequence(4096);
  EXPECT_DOUBLE_EQ(flops_of(gated, LayerKind::kDense, PassKind::kF, context) -
                       flops_of(deepseek_v3(), LayerKind::kDense, PassKind::kF, context),
                   2.0 * 4096 * 7168 * width);
  EXPECT_DOUBLE_EQ(
      kept(gated, LayerKind::kDense, context) - kept(deepseek_v3(), LayerKind::kDense, context),
      2 * 4096 * width * 2);
}

// Falcon-H1: both read what one norm makes, and one residual takes the sum.
TEST(Beside, IsAttentionAndMambaInOneLayer) {
  Transformer model = llama3_70b();
  model.linear = LinearAttention{.kind = LinearAttention::Kind::kMamba2,
                                 .num_heads = 64,
                                 .head_size = 128,
                                 .key_heads = 8,
                                 .key_head_size = 128,
                                 .conv_kernel = 4,
                                 .chunk_size = 256};
  model.layer_pattern = "H";
  EXPECT_EQ(fault_of(model), "");
  EXPECT_EQ(layer_kind(model, 0), LayerKind::kBesideDense);
  const double h = model.hidden_size;
  const auto sum = [](const auto& of) {
    return of(LayerKind::kDense) + of(LayerKind::kLinearAlone);
  };
  const auto number = [&](LayerKind kind) { return parameters(model, kind); };
  EXPECT_DOUBLE_EQ(number(LayerKind::kBesideDense), sum(number) - h);
  const LayerContext context = sequence(4096);
  for (const PassKind pass : {PassKind::kF, PassKind::kB, PassKind::kW}) {
    const auto work = [&](LayerKind kind) { return flops_of(model, kind, pass, context); };
    EXPECT_DOUBLE_EQ(work(LayerKind::kBesideDense), sum(work)) << to_text(pass);
  }
  // Inputs of the norm and of the projections are kept once.
  const auto bytes = [&](LayerKind kind) { return kept(model, kind, context); };
  EXPECT_DOUBLE_EQ(bytes(LayerKind::kBesideDense), sum(bytes) - 2 * 4096 * h * 2);
  // Tensor ranks sum the outputs of both at once.
  const Work divided = layer_work(model, LayerKind::kBesideDense, PassKind::kF, sequence(4096, 8));
  EXPECT_EQ(divided.collectives.size(), 2U);
  model.linear.reset();
  EXPECT_EQ(fault_of(model), "R, M and H in layer_pattern need linear_attention");
}

}  // namespace
}  // namespace pipesim::state_layers_test
