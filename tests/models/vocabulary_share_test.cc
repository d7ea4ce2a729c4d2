// A device's share of a divided vocabulary against the whole.
#include "models/vocabulary_share.h"

#include <array>
#include <gtest/gtest.h>

#include "models/layer_memory.h"
#include "models/layer_parameters.h"
#include "models/layer_work.h"
#include "models/memory.h"
#include "models/step_cost.h"
#include "sim/core/error.h"
#include "tests/models/shapes.h"

namespace pipesim::vocabulary_share_test {
namespace {

using enum VocabularyPlacement;

constexpr int kDevices = 8;

LayerContext whole() {
  LayerContext context;
  context.seq_length = 2048;
  return context;
}
LayerContext divided() {
  LayerContext context = whole();
  context.vocabulary_devices = kDevices;
  return context;
}

double share_flops(PassKind pass, VocabularyPlacement placement) {
  return flops(share_work(testing::gpt(32, 3072, 24, 128000), pass, placement, divided())).value();
}

TEST(VocabularyShare, OfAllDevicesComputesWhatTheWholeOutputDoes) {
  const Transformer model = testing::gpt(32, 3072, 24, 128000);
  double output = 0;
  for (const PassKind pass : {PassKind::kF, PassKind::kB, PassKind::kW}) {
    output += flops(layer_work(model, LayerKind::kOutput, pass, whole())).value();
  }
  for (const VocabularyPlacement placement : {kVocab1, kVocab2, kInterlaced}) {
    const double share =
        share_flops(PassKind::kS, placement) + share_flops(PassKind::kT, placement);
    EXPECT_DOUBLE_EQ(kDevices * share, output) << to_text(placement);
  }
}

TEST(VocabularyShare, RunsTheInputsGradientBeforeTheBarrierOnlyInVocab2) {
  EXPECT_DOUBLE_EQ(share_flops(PassKind::kS, kVocab2), 2 * share_flops(PassKind::kT, kVocab2));
  EXPECT_DOUBLE_EQ(share_flops(PassKind::kT, kVocab1), 2 * share_flops(PassKind::kS, kVocab1));
  EXPECT_DOUBLE_EQ(share_flops(PassKind::kT, kInterlaced), share_flops(PassKind::kT, kVocab1));
  EXPECT_THROW(share_flops(PassKind::kF, kVocab1), LogicError);
}

// Bytes of each kernel over the logits of a share: a loss in fp32 that is not fused, the gradient,
// and, where the softmax was divided by the share's own sum, its correction; vocab-2 casts it
// early.
TEST(VocabularyShare, CountsEveryKernelOverTheLogits) {
  const Transformer model = testing::gpt(32, 3072, 24, 128000);
  const double logits = 2048.0 * 128000 / kDevices;
  const auto moved = [&](PassKind pass, VocabularyPlacement placement) {
    return share_work(model, pass, placement, divided()).moved.value() / logits;
  };
  const double rows = 4.0 * 2048 * 3072 / logits;
  EXPECT_NEAR(moved(PassKind::kS, kInterlaced), 38, 1e-9);
  EXPECT_NEAR(moved(PassKind::kS, kVocab1), 38, 1e-9);
  EXPECT_NEAR(moved(PassKind::kS, kVocab2), 38 + 6 + rows, 1e-9);
  EXPECT_NEAR(moved(PassKind::kT, kInterlaced), 14, 1e-9);
  EXPECT_NEAR(moved(PassKind::kT, kVocab1), 22, 1e-9);
  EXPECT_NEAR(moved(PassKind::kT, kVocab2), 22, 1e-9);
}

// The public code broadcasts in fp32 with vocab-1 and vocab-2, and a loss for every token with it.
TEST(VocabularyShare, ExchangesTheBytesOfThePublicCode) {
  const Transformer model = testing::gpt(32, 3072, 24, 128000);
  constexpr double kTokens = 2048;
  constexpr double kMessage = 2 * kTokens * 3072;
  const auto bytes = [&](VocabularyPlacement placement, Barrier barrier) {
    double sum = 0;
    for (const Collective& each : barrier_collectives(model, placement, divided(), barrier)) {
      sum += each.bytes.value();
    }
    return sum;
  };
  EXPECT_DOUBLE_EQ(bytes(kInterlaced, Barrier::kOutput), kMessage);
  EXPECT_DOUBLE_EQ(bytes(kVocab1, Barrier::kOutput), 2 * kMessage + 4 * kTokens);
  EXPECT_DOUBLE_EQ(bytes(kVocab1, Barrier::kSoftmax), 3 * 4 * kTokens);
  EXPECT_DOUBLE_EQ(bytes(kVocab2, Barrier::kSoftmax), 3 * 4 * kTokens + kMessage);
  EXPECT_DOUBLE_EQ(bytes(kVocab1, Barrier::kOutputGradient), kMessage);
}

TEST(VocabularyShare, SlowsPassesOfLayersBesideItsCollectivesButForInterlacedOnes) {
  Software software;
  software.beside_vocabulary = 0.8;
  for (const auto& [placement, longer] :
       {std::pair{kVocab1, 1.25}, {kVocab2, 1.25}, {kInterlaced, 1}}) {
    std::array<StageCost, 1> stages{};
    stages[0].forward = Seconds(4);
    stages[0].backward_input = Seconds(8);
    stages[0].backward_weight = Seconds(12);
    stages[0].transfer = Seconds(1);
    stages[0].recompute = Seconds(4);
    slow_beside_collectives(placement, software, stages);
    EXPECT_DOUBLE_EQ(stages[0].forward.value(), 4 * longer);
    EXPECT_DOUBLE_EQ(stages[0].backward_input.value(), 8 * longer);
    EXPECT_DOUBLE_EQ(stages[0].backward_weight.value(), 12 * longer);
    EXPECT_DOUBLE_EQ(stages[0].recompute->value(), 4 * longer);
    EXPECT_FALSE(stages[0].overlapped);
    EXPECT_EQ(stages[0].transfer, Seconds(1));
  }
}

TEST(VocabularyShare, LeavesPositionsAndTheFinalNormToTheEnds) {
  Transformer model = testing::gpt(32, 3072, 24, 128000);
  for (const PassKind pass : {PassKind::kF, PassKind::kB, PassKind::kW}) {
    const Work output = layer_work(model, LayerKind::kOutput, pass, divided());
    EXPECT_TRUE(output.matmuls.empty());
    EXPECT_EQ(output.kernels, pass == PassKind::kW ? 0 : 1);
  }
  const LayerMemory embedding = layer_memory(model, LayerKind::kEmbedding, divided());
  EXPECT_DOUBLE_EQ(embedding.dense_parameters, 2048.0 * 3072);
  const LayerMemory output = layer_memory(model, LayerKind::kOutput, divided());
  EXPECT_DOUBLE_EQ(output.dense_parameters, 2.0 * 3072);
  EXPECT_DOUBLE_EQ(output.activation.value(), 2.0 * 2048 * 3072);
}

// Both ways of counting parameters, tied and not.
TEST(VocabularyShare, HoldsTheWholeModelBetweenAllDevices) {
  for (const bool tied : {true, false}) {
    Transformer model = testing::gpt(32, 3072, 24, 128000);
    model.tied_embeddings = tied;
    const Placement place = Placement::looped(kDevices, 1);
    const Layout layout = even_layout(model, place, {});
    const MemoryEstimate memory = estimate_memory(model, divided(), layout, place, {});
    double by_memory = 0;
    double by_step = 0;
    for (int device = 0; device < kDevices; ++device) {
      const DeviceMemory& held = memory.devices[device];
      by_memory += (held.weights.value() / 2) + held.vocabulary.value() / 18;
      by_step += held_parameters(model, divided(), layout, place, device).dense;
    }
    EXPECT_NEAR(by_memory / total_parameters(model), 1, 1e-12) << tied;
    EXPECT_NEAR(by_step / total_parameters(model), 1, 1e-12) << tied;
  }
}

TEST(VocabularyShare, TakesEquallyMuchOfEveryDeviceButForTheEnds) {
  const Transformer model = testing::gpt(32, 3072, 24, 128000);
  const Placement place = Placement::looped(kDevices, 1);
  const MemoryEstimate memory =
      estimate_memory(model, divided(), even_layout(model, place, {}), place, {});
  const DeviceMemory& middle = memory.devices[3];
  EXPECT_DOUBLE_EQ(middle.vocabulary.value(), 18.0 * 128000 / kDevices * 3072);
  EXPECT_DOUBLE_EQ(memory.devices[0].vocabulary.value() - middle.vocabulary.value(),
                   18.0 * 2048 * 3072);
  EXPECT_DOUBLE_EQ(memory.devices[0].buffers.value(), middle.buffers.value());
}

TEST(VocabularyShare, RoundsUpWhereTheVocabularyDoesNotDivide) {
  const Transformer model = testing::gpt(32, 3072, 24, 50257);
  const Work work = share_work(model, PassKind::kS, kVocab1, divided());
  ASSERT_EQ(work.matmuls.size(), 1U);
  EXPECT_EQ(work.matmuls[0].n, 6283);
}

TEST(VocabularyShare, IsImpossibleBesideModulesThatMakeLogitsOfTheirOwn) {
  Transformer model = testing::gpt(32, 3072, 24, 128000);
  EXPECT_EQ(fault_of(model, divided()), "");
  model.mtp_layers = 1;
  EXPECT_NE(fault_of(model, divided()).find("MTP modules"), std::string::npos);
}

}  // namespace
}  // namespace pipesim::vocabulary_share_test
