#include "models/sharding.h"

#include <array>
#include <gtest/gtest.h>

#include "models/layer_memory.h"
#include "models/layer_parameters.h"
#include "models/memory.h"
#include "models/step_cost.h"
#include "tests/models/shapes.h"

namespace pipesim::sharding_test {
namespace {

using testing::gpt;
using testing::llama3_70b;
using testing::mixtral;
using testing::plain;

ParameterState sharded(ShardingStrategy strategy, int data, bool fp32 = true) {
  ParameterState state{.data = data, .gradients_in_fp32 = fp32};
  set_sharding(strategy, state);
  return state;
}

MemoryEstimate even(const Transformer& model, const LayerContext& context,
                    const ParameterState& state, int devices) {
  const Placement placement = Placement::looped(devices, 1);
  return estimate_memory(model, context, even_layout(model, placement, {}), placement, state);
}

// Rajbhandari 2020 (arXiv 1910.02054), Figure 1: GB of 7.5 billion parameters on 64 ranks, with 2
// bytes a weight, 2 a gradient and 12 in Adam's state.
TEST(Sharding, HoldsWhatZerosFigure1Says) {
  const Transformer model = gpt(8, 512, 8);
  const std::array<double, 4> published{120, 31.4, 16.6, 1.9};
  for (size_t stage = 0; stage < published.size(); ++stage) {
    const ParameterState state = sharded(static_cast<ShardingStrategy>(stage), 64, false);
    const DeviceMemory held = even(model, plain(1, 128), state, 1).devices.front();
    const Bytes states = held.weights + held.gradients + held.optimizer + held.vocabulary;
    EXPECT_NEAR(7.5 * states.value() / total_parameters(model), published[stage], 0.05) << stage;
  }
}

TEST(Sharding, StrategiesAreReadBackFromWhatTheyDivide) {
  for (size_t stage = 0; stage < kShardingStrategies.size(); ++stage) {
    const auto strategy = static_cast<ShardingStrategy>(stage);
    EXPECT_EQ(strategy_of(sharded(strategy, 2)), strategy);
  }
}

// The embedding (with positions) and the output are the largest, beside four layers.
TEST(Sharding, HoldsTheTwoLargestLayersWholeWhileTheyRun) {
  Transformer model = gpt(4, 512, 8, 1024);
  model.vocab_size = 51200;
  const LayerContext context = plain(1, 128);
  const auto buffers = [&](ShardingStrategy strategy, int devices) {
    return even(model, context, sharded(strategy, 4), devices).devices[devices / 2].buffers;
  };
  const double matrix = 1.0 * model.vocab_size * 512;
  const double embedding = matrix + 512.0 * model.max_position_embeddings;
  const double output = matrix + 2 * 512;
  const Bytes before = buffers(ShardingStrategy::kOptim, 1);
  // A gradient of 4 bytes, and a weight of 2.
  EXPECT_NEAR((buffers(ShardingStrategy::kOptimGrads, 1) - before).value(),
              4 * (embedding + output), 1e-3);
  EXPECT_NEAR((buffers(ShardingStrategy::kOptimGradsParams, 1) - before).value(),
              6 * (embedding + output), 1e-3);
  // On a stage in the middle of four there is one layer.
  const double layer = parameters(model, LayerKind::kDense);
  EXPECT_NEAR(
      (buffers(ShardingStrategy::kOptimGradsParams, 4) - buffers(ShardingStrategy::kOptim, 4))
          .value(),
      6 * layer, 1e-3);
}

TEST(Sharding, HoldsTwoLayersOfEachPassWhereTwoRunAtATime) {
  const Transformer model = gpt(24, 512, 8, 1024);
  LayerContext context = plain(1, 128);
  const ParameterState state = sharded(ShardingStrategy::kOptimGradsParams, 4);
  const Bytes one = even(model, context, state, 4).devices[1].buffers;
  context.blocks = true;
  const Bytes two = even(model, context, state, 4).devices[1].buffers;
  EXPECT_NEAR((two - one).value(), 2 * 2 * parameters(model, LayerKind::kDense), 1e-3);
}

TEST(Sharding, WeightsThatStayAfterForwardAreHeldWholeBesideTheirShard) {
  const Transformer model = gpt(4, 512, 8, 1024);
  ParameterState state = sharded(ShardingStrategy::kOptimGradsParams, 4);
  const LayerContext context = plain(1, 128);
  const double layer = parameters(model, LayerKind::kDense);
  EXPECT_NEAR(even(model, context, state, 4).devices[1].weights.value(), 2 * layer / 4, 1e-3);
  state.reshard_after_forward = false;
  const DeviceMemory kept = even(model, context, state, 4).devices[1];
  EXPECT_NEAR(kept.weights.value(), 2 * layer * (1 + 0.25), 1e-3);
  EXPECT_NEAR(kept.gradients.value(), 4 * layer / 4, 1e-3);
  state.reduce_every_microbatch = false;
  const DeviceMemory summed = even(model, context, state, 4).devices[1];
  EXPECT_NEAR(summed.gradients.value(), 4 * layer, 1e-3);
  // The gradient of a layer is no longer on its way.
  EXPECT_NEAR((kept.buffers - summed.buffers).value(), 4 * layer, 1e-3);
}

TEST(Sharding, DividesWithinACopyWhereThereAreSeveral) {
  const Transformer model = mixtral();
  const LayerContext context{.micro_batch_size = 1, .seq_length = 4096, .expert = 4};
  ParameterState state = sharded(ShardingStrategy::kOptimGradsParams, 16);
  state.shard_degree = 8;
  EXPECT_EQ(fault_of(model, context, state), "");
  const LayerMemory layer = layer_memory(model, LayerKind::kMoe, context);
  const DeviceMemory held = even(model, context, state, 8).devices[3];  // four layers
  // Eight ranks divide a copy, of which two hold the same experts.
  const double own = 4 * (layer.dense_parameters / 8 + layer.expert_parameters / 2);
  EXPECT_DOUBLE_EQ(held.weights.value(), 2 * own);
  EXPECT_DOUBLE_EQ(held.gradients.value(), 4 * own);
  EXPECT_DOUBLE_EQ(held.optimizer.value(), 12 * own);
}

TEST(Sharding, RefusesCopiesThatRanksDoNotMakeUp) {
  ParameterState state = sharded(ShardingStrategy::kOptim, 12);
  state.shard_degree = 8;
  EXPECT_NE(fault_of(llama3_70b(), plain(1, 128), state).find("12 does not divide by"),
            std::string::npos);
  state = sharded(ShardingStrategy::kOptim, 8);
  state.shard_degree = 2;
  const LayerContext experts{.micro_batch_size = 1, .seq_length = 4096, .expert = 4};
  EXPECT_NE(fault_of(mixtral(), experts, state).find("data_parallel_shard_degree 2"),
            std::string::npos);
}

// A quarter of two matrices on every device; data ranks divide its 18 bytes a parameter like those
// of layers, and what a pass of it needs whole is a matrix and its gradient.
TEST(ShardedVocabulary, IsHeldAsLayersAre) {
  Transformer model = gpt(4, 512, 8, 1024);
  model.vocab_size = 51200;
  model.tied_embeddings = false;
  LayerContext context = plain(1, 128);
  context.vocabulary_devices = 4;
  const double matrix = 51200.0 / 4 * 512;  // more than a layer
  const auto held = [&](ShardingStrategy strategy) {
    return even(model, context, sharded(strategy, 8), 4).devices[1];
  };
  const DeviceMemory optim = held(ShardingStrategy::kOptim);
  EXPECT_DOUBLE_EQ(optim.vocabulary.value(), 2 * matrix * (2 + 4 + 12.0 / 8));
  const DeviceMemory gradients = held(ShardingStrategy::kOptimGrads);
  EXPECT_DOUBLE_EQ(gradients.vocabulary.value(), 2 * matrix * (2 + 16.0 / 8));
  EXPECT_NEAR((gradients.buffers - optim.buffers).value(), 2 * 4 * matrix, 1e-3);
  const DeviceMemory weights = held(ShardingStrategy::kOptimGradsParams);
  EXPECT_DOUBLE_EQ(weights.vocabulary.value(), 2 * matrix * 18 / 8);
  EXPECT_NEAR((weights.buffers - optim.buffers).value(), 2 * (2 + 4) * matrix, 1e-3);
  model.tied_embeddings = true;
  const DeviceMemory tied = held(ShardingStrategy::kOptimGradsParams);
  EXPECT_DOUBLE_EQ(tied.vocabulary.value(), matrix * 18 / 8);
}

// Links of 1 GB/s, collectives without a start of their own.
Hardware simple() {
  Hardware hardware;
  Gpu& gpu = hardware.gpu;
  gpu.peak = {FlopsPerSecond(1e12), FlopsPerSecond(2e12)};
  gpu.memory_bandwidth = BytesPerSecond(1e30);
  gpu.matmul.tail = 0;
  hardware.interconnect.gpus_per_node = 8;
  hardware.interconnect.nics_per_node = 8;
  hardware.interconnect.nic_bandwidth = BytesPerSecond(1e9);
  hardware.interconnect.exchange_share = 0.1;
  for (CollectiveCurve& curve : hardware.interconnect.curves) {
    curve.bandwidth = BytesPerSecond(1e9);
  }
  return hardware;
}

TEST(Sharding, GathersAndScattersALayerOverTheRanksOfItsCopy) {
  const Transformer model = mixtral();
  CostSetting setting;
  setting.context = {.micro_batch_size = 1, .seq_length = 4096, .expert = 4};
  setting.state = sharded(ShardingStrategy::kOptimGradsParams, 16);
  setting.state.shard_degree = 8;
  const LayerParameters held = layer_parameters(model, LayerKind::kMoe, {1, 4, 1});
  const LayerSharding layer = layer_sharding(model, LayerKind::kMoe, setting, simple());
  // A ring of 8 sends 7/8 of the bytes. Two ranks hold the same experts: four apart, on one node.
  EXPECT_NEAR(layer.gather.value(), 2e-9 * (held.dense * 7 / 8 + held.expert / 2), 1e-9);
  EXPECT_NEAR(layer.scatter.value(), 4e-9 * (held.dense * 7 / 8 + held.expert / 2), 1e-9);
  EXPECT_EQ(dense_groups(setting, 8).replicas.ranks, 2);
  EXPECT_EQ(dense_groups(setting, 8).replicas.ranks_per_node, 1);
  EXPECT_EQ(expert_groups(setting, 8).shards.ranks, 2);
  EXPECT_EQ(expert_groups(setting, 8).shards.ranks_per_node, 2);
}

// A ring of 4 sends 3/4 of a device's share of a matrix.
TEST(ShardedVocabulary, PassesWaitForTheirMatrixAndTheirGradient) {
  Transformer model = gpt(4, 512, 8, 1024);
  model.tied_embeddings = false;
  CostSetting setting;
  setting.context = plain(1, 128);
  setting.context.vocabulary_devices = 2;
  setting.state = sharded(ShardingStrategy::kOptimGradsParams, 4);
  const auto of = [&](VocabularyPlacement placement) {
    return vocabulary_sharding(model, placement, setting, simple());
  };
  const double matrix = 1.0 * model.vocab_size / 2 * 512;
  const double gather = 2e-9 * 0.75 * matrix;
  const double scatter = 4e-9 * 0.75 * matrix;
  for (const auto placement : {VocabularyPlacement::kVocab1, VocabularyPlacement::kInterlaced}) {
    EXPECT_NEAR(of(placement).input_forward.value(), gather, 1e-12);
    EXPECT_NEAR(of(placement).output_forward.value(), gather, 1e-12);
    EXPECT_NEAR(of(placement).output_backward.value(), gather + scatter, 1e-12);
    EXPECT_NEAR(of(placement).input_backward.value(), scatter, 1e-12);
  }
  // vocab-2 makes the input's gradient in S.
  EXPECT_NEAR(of(VocabularyPlacement::kVocab2).output_backward.value(), scatter, 1e-12);
  EXPECT_NEAR(of(VocabularyPlacement::kVocab2).output_forward.value(), gather, 1e-12);
  // The final norm alone is the last layer's.
  EXPECT_EQ(layer_sharding(model, LayerKind::kOutput, setting, simple()).parameters.dense, 2 * 512);
  setting.state.reshard_after_forward = false;
  EXPECT_EQ(of(VocabularyPlacement::kVocab1).output_forward, Seconds(0));
  EXPECT_NEAR(of(VocabularyPlacement::kVocab1).output_backward.value(), scatter, 1e-12);
  setting.state = sharded(ShardingStrategy::kOptimGrads, 4);
  EXPECT_EQ(of(VocabularyPlacement::kVocab1).input_forward, Seconds(0));
  EXPECT_NEAR(of(VocabularyPlacement::kVocab1).input_backward.value(), scatter, 1e-12);
}

// Three layers, of 10 s forward, 12 s of B and 8 s of W.
class ExposedSharding : public ::testing::Test {
 protected:
  ExposedSharding() {
    LayerCost& layer = costs_[LayerKind::kDense];
    layer.forward.matmul = layer.again.matmul = Seconds(10);
    layer.backward_input.matmul = Seconds(12);
    layer.backward_weight.matmul = Seconds(8);
    setting_.state = sharded(ShardingStrategy::kOptimGradsParams, 4);
  }

  StageSharding of(double gather, double scatter, const ShardedRun& run = {.devices = 4}) {
    LayerShardings shardings{};
    shardings[LayerKind::kDense].gather = Seconds(gather);
    shardings[LayerKind::kDense].scatter = Seconds(scatter);
    return stage_sharding(model_, {.first = 0, .layers = 3}, costs_, shardings, setting_, simple(),
                          run);
  }

  Transformer model_ = gpt(12, 512, 8);
  LayerCosts costs_{};
  CostSetting setting_;
};

TEST_F(ExposedSharding, IsTheFirstGatherAndWhatIsLongerThanTheComputeBeforeIt) {
  // Two gathers of 4 s take a tenth of the GPU for as long; two of 13 s are 3 s longer than F.
  EXPECT_NEAR(of(4, 0).forward.value(), 4 + 2 * 0.4, 1e-12);
  EXPECT_NEAR(of(13, 0).forward.value(), 13 + 2 * 3, 1e-12);
  // In between, 9.5 s behind 10 s at nine tenths of the rate: 10.95 s in all.
  EXPECT_NEAR(of(9.5, 0).forward.value(), 9.5 + 2 * 0.95, 1e-12);
}

TEST_F(ExposedSharding, GathersAgainForBAndScattersBehindW) {
  const StageSharding apart = of(15, 9);
  EXPECT_NEAR(apart.backward_input.value(), 15 + 2 * 3, 1e-12);
  EXPECT_NEAR(apart.backward_weight.value(), 2 * 1 + 9, 1e-12);
}

TEST_F(ExposedSharding, OfAFusedBackwardSharesItsComputeBetweenBoth) {
  setting_.fused_backward = true;
  // Behind 20 s of the last layer 15 s, of the middle one 15 + 9, of the first 9: 1.5, 4 and 0.9.
  const StageSharding fused = of(15, 9);
  EXPECT_NEAR((fused.backward_input + fused.backward_weight).value(), 15 + 1.5 + 4 + 0.9 + 9,
              1e-12);
  EXPECT_NEAR(fused.backward_input.value(), 15 + 2 * 1.5, 1e-12);
  // A pass that runs again hides more: 30 s.
  const StageSharding again = of(15, 9, {.devices = 4, .recomputed = true});
  EXPECT_NEAR((again.backward_input + again.backward_weight).value(), 15 + 1.5 + 2.4 + 0.9 + 9,
              1e-12);
}

TEST_F(ExposedSharding, WeightsThatStayAreGatheredOnceInAPipelineAndElseInEachForward) {
  setting_.state.reshard_after_forward = false;
  EXPECT_EQ(of(4, 9).forward, Seconds(0));
  EXPECT_EQ(of(4, 9).backward_input, Seconds(0));
  EXPECT_NEAR(of(4, 9).backward_weight.value(), 2 * 1 + 9, 1e-12);
  EXPECT_NEAR(of(4, 9, {.devices = 1}).forward.value(), 4.8, 1e-12);
  EXPECT_EQ(of(4, 9, {.devices = 1}).backward_input, Seconds(0));
  setting_.state.reduce_every_microbatch = false;
  EXPECT_EQ(of(4, 9).backward_weight, Seconds(0));
}

TEST_F(ExposedSharding, OfGradientsAloneGathersNothing) {
  setting_.state = sharded(ShardingStrategy::kOptimGrads, 4);
  EXPECT_EQ(of(4, 9).forward, Seconds(0));
  EXPECT_EQ(of(4, 9).backward_input, Seconds(0));
  EXPECT_NEAR(of(4, 9).backward_weight.value(), 2 * 1 + 9, 1e-12);
}

TEST_F(ExposedSharding, OfSplitsIsEachSplitsOwn) {
  // A split of two computes for 5 s behind each gather of 6 s.
  EXPECT_NEAR(of(6, 0, {.devices = 4, .splits = 2}).forward.value(), 6 + 2 * 1, 1e-12);
}

// Four ranks, on two devices of two layers each.
class ShardedStep : public ::testing::Test {
 protected:
  ShardedStep() { setting_.context = plain(1, 1024); }

  StepCost step() {
    const Hardware hardware = simple();
    const Placement place = Placement::looped(2, 1);
    return step_cost(model_, setting_, hardware, even_layout(model_, place, {}), place,
                     layer_costs(model_, setting_, hardware), 0);
  }

  double held() {
    const Placement place = Placement::looped(2, 1);
    return held_parameters(model_, setting_.context, even_layout(model_, place, {}), place, 0)
        .dense;
  }

  Transformer model_ = [] {
    Transformer model = gpt(4, 512, 8, 1024);
    model.tied_embeddings = false;
    return model;
  }();
  CostSetting setting_;
};

TEST_F(ShardedStep, IsLeftNoGradientsThatMicrobatchesReducedAndNoWeightsThatPassesGather) {
  setting_.state = sharded(ShardingStrategy::kOptimGrads, 4);
  EXPECT_EQ(step()[ClosingTerm::kReduce], Seconds(0));
  EXPECT_NEAR(step()[ClosingTerm::kGather].value(), 2e-9 * 0.75 * held(), 1e-9);
  setting_.state = sharded(ShardingStrategy::kOptimGradsParams, 4);
  EXPECT_EQ(step()[ClosingTerm::kReduce], Seconds(0));
  EXPECT_EQ(step()[ClosingTerm::kGather], Seconds(0));
}

TEST_F(ShardedStep, GathersWeightsThatStayOnceAndReducesGradientsThatWereSummed) {
  setting_.state = sharded(ShardingStrategy::kOptimGradsParams, 4);
  setting_.state.reshard_after_forward = false;
  setting_.state.reduce_every_microbatch = false;
  const StepCost cost = step();
  EXPECT_NEAR(cost[ClosingTerm::kReduce].value(), 4e-9 * 0.75 * held(), 1e-9);
  EXPECT_NEAR(cost[ClosingTerm::kGather].value(), 2e-9 * 0.75 * held(), 1e-9);
  const LayerShardings shardings = layer_shardings(model_, setting_, simple());
  const Seconds first = shardings[LayerKind::kEmbedding].gather;
  EXPECT_GT(cost[ClosingTerm::kGather] - cost.hidden, first);
  EXPECT_LT(cost[ClosingTerm::kGather] - cost.hidden, cost[ClosingTerm::kGather]);
}

TEST_F(ShardedStep, GathersTheShareOfAVocabularyOnceTooSeenWhole) {
  setting_.context.vocabulary_devices = 2;
  setting_.state = sharded(ShardingStrategy::kOptimGradsParams, 4);
  setting_.state.reshard_after_forward = false;
  const StepCost cost = step();
  EXPECT_NEAR(cost[ClosingTerm::kGather].value(), 2e-9 * 0.75 * held(), 1e-9);
  EXPECT_GT((cost[ClosingTerm::kGather] - cost.hidden).value(),
            2 * 2e-9 * 0.75 * model_.vocab_size / 2 * model_.hidden_size);
}

TEST_F(ShardedStep, AllReducesItsPartWithReplicas) {
  setting_.state = sharded(ShardingStrategy::kOptim, 4);
  setting_.state.shard_degree = 2;
  // Half is scattered, and of that half both halves go round.
  EXPECT_NEAR(step()[ClosingTerm::kReduce].value(), 4e-9 * held() * (0.5 + 0.5), 1e-9);
  EXPECT_NEAR(step()[ClosingTerm::kGather].value(), 2e-9 * held() * 0.5, 1e-9);
  setting_.state = sharded(ShardingStrategy::kOptimGradsParams, 4);
  setting_.state.shard_degree = 2;
  EXPECT_NEAR(step()[ClosingTerm::kReduce].value(), 4e-9 * held() * 0.5, 1e-9);
}

}  // namespace
}  // namespace pipesim::sharding_test
