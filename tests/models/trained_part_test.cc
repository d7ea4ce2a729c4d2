// Costs and bytes where a part of the layers is computed again, adapters alone train, or all is
// fp32.
#include <gtest/gtest.h>

#include "models/layer_memory.h"
#include "models/layer_parameters.h"
#include "models/layer_work.h"
#include "models/memory_model.h"
#include "models/stage_passes.h"
#include "models/step_cost.h"
#include "models/temporaries.h"
#include "tests/models/shapes.h"

namespace pipesim::trained_part_test {
namespace {

using testing::deepseek_v3;
using testing::llama3_70b;
using testing::mixtral;

LayerContext context_of(RecomputedLayers layers = {}) {
  LayerContext context{.micro_batch_size = 1, .seq_length = 4096};
  context.recompute = RecomputeGranularity::kFull;
  context.recomputed_layers = layers;
  return context;
}

StageMemory stage_of(RecomputedLayers layers) {
  const Transformer model = llama3_70b();
  const LayerContext context = context_of(layers);
  return MemoryModel(model, context, {}).stage({.first = 0, .layers = 8});
}

LayerMemory layer() { return layer_memory(llama3_70b(), LayerKind::kDense, context_of()); }

TEST(RecomputedLayers, KeepTheOthersWhole) {
  const StageMemory block = stage_of({.first = 3});
  EXPECT_NEAR(block.checkpoint.value(), (3 * layer().checkpoint + 5 * layer().activation).value(),
              1);
  EXPECT_NEAR((block.recomputed - block.checkpoint).value(),
              (layer().activation - layer().checkpoint).value(), 1);
  const StageMemory third = stage_of({.every = 3});  // layers 2 and 5
  EXPECT_NEAR(third.checkpoint.value(), (2 * layer().checkpoint + 6 * layer().activation).value(),
              1);
  EXPECT_EQ(stage_of({.first = 8}).checkpoint, stage_of({}).checkpoint);
}

TEST(RecomputedLayers, OfAGroupKeepOneInput) {
  const StageMemory groups = stage_of({.group = 3});  // 3, 3 and 2
  EXPECT_NEAR(groups.checkpoint.value(), (3 * layer().checkpoint).value(), 1);
  EXPECT_NEAR((groups.recomputed - groups.checkpoint).value(),
              (3 * layer().activation - layer().checkpoint).value(), 1);
}

TEST(RecomputedLayers, AloneRunAgain) {
  const Transformer model = llama3_70b();
  LayerCosts costs{};
  costs[LayerKind::kDense].again.matmul = Seconds(2);
  const StageLayers stage{.first = 0, .layers = 8};
  EXPECT_EQ(stage_passes(model, stage, costs).recompute.total(), Seconds(16));
  EXPECT_EQ(stage_passes(model, stage, costs, {.first = 3}).recompute.total(), Seconds(6));
  EXPECT_EQ(stage_passes(model, stage, costs, {.every = 2}).recompute.total(), Seconds(8));
}

LayerContext modules_of(RecomputeGranularity recompute, RecomputedLayers layers) {
  LayerContext context{.micro_batch_size = 1, .seq_length = 4096};
  context.recompute = recompute;
  context.recomputed_layers = layers;
  return context;
}

TEST(RecomputedLayers, OfModulesLeaveTheOthersWhole) {
  const Transformer model = llama3_70b();
  const RecomputeGranularity modules = RecomputeModule::kMlpActivation;
  const auto activation = [&](RecomputedLayers layers) {
    const LayerContext context = modules_of(modules, layers);
    return MemoryModel(model, context, {}).stage({.first = 0, .layers = 8}).activation;
  };
  const auto of_layer = [&](RecomputeGranularity recompute) {
    return layer_memory(model, LayerKind::kDense, modules_of(recompute, {})).activation;
  };
  EXPECT_NEAR(activation({.first = 3}).value(), (3 * of_layer(modules) + 5 * of_layer({})).value(),
              1);
  EXPECT_LT(activation({}), activation({.first = 3}));
}

TEST(RecomputedLayers, HaveModulesOfTheOthersMadeAgain) {
  const Transformer model = llama3_70b();
  const RecomputedLayers layers{.first = 3, .others = RecomputeModule::kMlpActivation};
  const LayerContext context = modules_of(RecomputeGranularity::kFull, layers);
  const StageMemory stage = MemoryModel(model, context, {}).stage({.first = 0, .layers = 8});
  const LayerContext others = modules_of(layers.others, {});
  const LayerMemory less = layer_memory(model, LayerKind::kDense, others);
  EXPECT_NEAR(stage.checkpoint.value(), (3 * layer().checkpoint + 5 * less.activation).value(), 1);
  EXPECT_LT(less.activation, layer().activation);

  LayerCosts costs{};
  costs[LayerKind::kDense].backward_input.matmul = Seconds(2);
  costs[LayerKind::kDense].backward_of_others.emplace().matmul = Seconds(3);
  const StagePasses passes = stage_passes(model, {.first = 0, .layers = 8}, costs, layers);
  EXPECT_EQ(passes.backward_input.total(), Seconds(3 * 2 + 5 * 3));
}

// Layers that are not recomputed whole hold nothing that leaves the GPU, and take it back.
TEST(RecomputedLayers, LetActivationsOfTheOthersLeave) {
  const Transformer model = llama3_70b();
  const RecomputedLayers layers{.first = 3, .others = RecomputeModule::kLayerNorm};
  LayerContext context = modules_of(RecomputeGranularity::kFull, layers);
  const auto bytes = [&] {
    const MemoryModel memory(model, context, {});
    const StageLayers stage{.first = 0, .layers = 8};
    return std::pair(memory.stage(stage), memory.device(std::array{stage}).buffers);
  };
  const auto [held, buffers] = bytes();
  context.offloaded = OffloadModule::kCoreAttention;
  const auto [left, more_buffers] = bytes();
  EXPECT_GT(left.offloaded, Bytes(0));
  EXPECT_NEAR((held.checkpoint - left.checkpoint).value(), left.offloaded.value(), 1);
  EXPECT_NEAR((more_buffers - buffers).value(), (2.0 / 5 * left.offloaded).value(), 1);
}

// Rows go to the experts once more, and are not kept.
TEST(RecomputedLayers, SendRowsToTheExpertsAgain) {
  LayerContext context{.micro_batch_size = 1, .seq_length = 4096};
  context.expert = 8;
  LayerContext again = context;
  again.recompute = RecomputeModule::kMoeDispatch;
  const auto work = [](const LayerContext& of, PassKind pass) {
    return layer_work(mixtral(), LayerKind::kMoe, pass, of);
  };
  EXPECT_EQ(work(again, PassKind::kB).collectives.size(),
            work(context, PassKind::kB).collectives.size() + 1);
  EXPECT_EQ(flops(work(again, PassKind::kB)), flops(work(context, PassKind::kB)));
  EXPECT_EQ(work(again, PassKind::kF).collectives.size(),
            work(context, PassKind::kF).collectives.size());
  const LayerMemory kept = layer_memory(mixtral(), LayerKind::kMoe, again);
  const double rows = 4096.0 * 2 * mixtral().hidden_size * 2;
  EXPECT_NEAR(kept.rebuilt.value(), rows, 1);
  EXPECT_NEAR(
      (layer_memory(mixtral(), LayerKind::kMoe, context).activation - kept.activation).value(),
      rows, 1);
}

LayerContext adapted(int rank) {
  LayerContext context{.micro_batch_size = 1, .seq_length = 4096};
  context.adapter_rank = rank;
  return context;
}

// Llama 3 70B: queries, keys and values at once, the projection, gate and up at once, and down.
TEST(Adapters, HoldARankForEveryInputAndOutput) {
  const LayerMemory memory = layer_memory(llama3_70b(), LayerKind::kDense, adapted(16));
  const double sides = (8192 + 10240) + (8192 + 8192) + (8192 + 2 * 28672) + (28672 + 8192);
  EXPECT_DOUBLE_EQ(memory.dense_trained, 16 * sides);
  EXPECT_DOUBLE_EQ(memory.dense_parameters,
                   parameters(llama3_70b(), LayerKind::kDense) + 16 * sides);
}

TEST(Adapters, AloneHaveGradientsAndStates) {
  const Transformer model = llama3_70b();
  const LayerContext context = adapted(16);
  const MemoryModel memory(model, context, {});
  const std::vector<StageLayers> stages{
      {.first = 0, .layers = 80, .embedding = true, .output = true}};
  const DeviceMemory held = memory.device(stages);
  const double trained = 80 * layer_memory(model, LayerKind::kDense, context).dense_trained;
  EXPECT_NEAR(held.gradients.value(), 4 * trained, 1);
  EXPECT_NEAR(held.optimizer.value(), 12 * trained, 1);
  EXPECT_NEAR(held.vocabulary.value(), 2.0 * (2.0 * 128256 * 8192 + 8192), 1);
  EXPECT_NEAR(held_parameters(model, context, stages).dense, trained, 1);
}

TEST(Adapters, LeaveWNoFrozenMatrix) {
  for (const Transformer& model : {llama3_70b(), mixtral()}) {
    const LayerKind kind = model.experts ? LayerKind::kMoe : LayerKind::kDense;
    const auto of = [&](PassKind pass, int rank) {
      return flops(layer_work(model, kind, pass, adapted(rank))).value();
    };
    const double more = of(PassKind::kF, 16) - of(PassKind::kF, 0);
    EXPECT_GT(more, 0);
    EXPECT_NEAR(of(PassKind::kB, 16) - of(PassKind::kB, 0), more, 1e-9 * of(PassKind::kF, 0));
    EXPECT_NEAR(of(PassKind::kW, 16), more, 1e-9 * of(PassKind::kF, 0));
  }
}

// Two FLOPs for every token and number of an adapter, in each of the three passes.
TEST(Adapters, ComputeTwoFlopsForEachOfTheirNumbers) {
  const auto forward = [](int rank) {
    return flops(layer_work(llama3_70b(), LayerKind::kDense, PassKind::kF, adapted(rank))).value();
  };
  const double trained = layer_memory(llama3_70b(), LayerKind::kDense, adapted(16)).dense_trained;
  EXPECT_NEAR(forward(16) - forward(0), 2 * 4096 * trained, 1e-9 * forward(0));
}

TEST(Adapters, LeaveWOfTheFrozenOutOfModelFlops) {
  const Transformer model = llama3_70b();
  const double all = model_flops(model, 4096, true).value();
  const double matrices = 80 * parameters(model, LayerKind::kDense) + 128256.0 * 8192;
  const double frozen = model_flops(model, 4096, true, {.adapter_rank = 16}).value();
  const double adapters = 80 * layer_memory(model, LayerKind::kDense, adapted(16)).dense_trained;
  EXPECT_NEAR(frozen, all - 2 * 4096 * matrices + 6 * 4096 * adapters, 1e-4 * all);
}

// An encoder of 4 layers, whose patches a projector of one matrix brings to the model.
Transformer with_encoder(bool frozen, bool replicated = false) {
  Transformer model = llama3_70b();
  model.encoder = Encoder{.num_layers = 4,
                          .hidden_size = 1024,
                          .num_attention_heads = 16,
                          .ffn_hidden_size = 4096,
                          .inputs = 588,
                          .patches = 576,
                          .frozen = frozen,
                          .replicated = replicated};
  return model;
}

double flops_of(const Transformer& model, LayerKind kind, PassKind pass, bool frozen = false) {
  LayerContext context{.micro_batch_size = 1, .seq_length = 4096};
  context.frozen = frozen;
  return flops(layer_work(model, kind, pass, context)).value();
}

TEST(FrozenEncoder, RunsForwardAloneAndKeepsNothing) {
  const Transformer model = with_encoder(true);
  EXPECT_EQ(flops_of(model, LayerKind::kEncoder, PassKind::kF),
            flops_of(with_encoder(false), LayerKind::kEncoder, PassKind::kF));
  for (const PassKind pass : {PassKind::kB, PassKind::kW}) {
    EXPECT_EQ(flops_of(model, LayerKind::kEncoder, pass), 0);
  }
  const LayerMemory held =
      layer_memory(model, LayerKind::kEncoder, {.micro_batch_size = 1, .seq_length = 4096});
  EXPECT_GT(held.dense_parameters, 12 * 1024. * 1024);
  EXPECT_EQ(held.dense_trained, 0);
  EXPECT_EQ(held.activation, Bytes(0));
  EXPECT_EQ(temporaries(model, LayerKind::kEncoder, {.micro_batch_size = 1, .seq_length = 4096}),
            Bytes(0));
}

// Nothing before the projector trains, nor it beside adapters.
TEST(FrozenEncoder, LeavesAProjectorBesideAdaptersNoBackward) {
  Transformer model = with_encoder(true);
  model.encoder->projector_size = 8192;
  const auto flops = [&](PassKind pass, int rank) {
    return pipesim::flops(layer_work(model, LayerKind::kEmbedding, pass, adapted(rank))).value();
  };
  EXPECT_GT(flops(PassKind::kB, 0), 0);
  EXPECT_EQ(flops(PassKind::kB, 16), 0);
  EXPECT_LT(layer_memory(model, LayerKind::kEmbedding, adapted(16)).activation,
            layer_memory(model, LayerKind::kEmbedding, adapted(0)).activation);
}

TEST(FrozenEncoder, TakesNoGradientsNorStates) {
  const ParameterState state;
  const LayerContext context{.micro_batch_size = 1, .seq_length = 4096};
  const auto state_of = [&](bool frozen) {
    return least_state(with_encoder(frozen), context, state).value();
  };
  const double states = state.gradient_bytes() + state.optimizer.device_bytes();
  const double trained =
      4 * parameters(with_encoder(false), LayerKind::kEncoder) + (588 + 576 + 2) * 1024.;
  EXPECT_NEAR(state_of(false) - state_of(true), states * trained, 1);
}

// No more than one GPU holds that has everything.
TEST(LeastState, IsWhatOneDeviceHolds) {
  for (const bool tied : {false, true}) {
    for (const int mtp : {0, 1}) {
      Transformer model = deepseek_v3();
      model.mtp_layers = mtp;
      model.tied_embeddings = tied;
      const LayerContext context{.micro_batch_size = 1, .seq_length = 4096};
      const ParameterState state;
      const StageLayers all{0, model.num_layers, mtp, true, true};
      const DeviceMemory held = MemoryModel(model, context, state).device({&all, 1});
      const Bytes most = held.weights + held.gradients + held.optimizer + held.vocabulary;
      const Bytes least = least_state(model, context, state);
      EXPECT_LE(least, (1 + 1e-9) * most) << tied << mtp;
      EXPECT_GE(least, (1 - 1e-9) * most) << tied << mtp;
    }
  }
}

// The projector trains, and its input needs no gradient.
TEST(FrozenEncoder, LeavesTheProjectorToTrain) {
  const double matrix = 2 * 576 * 1024. * 8192;
  const double patches = 2 * 576 * 588. * 1024;
  const auto flops = [](bool frozen, PassKind pass) {
    return flops_of(with_encoder(frozen), LayerKind::kEmbedding, pass);
  };
  EXPECT_EQ(flops(true, PassKind::kF), matrix + patches);
  EXPECT_EQ(flops(true, PassKind::kB), 0);
  EXPECT_EQ(flops(true, PassKind::kW), matrix);
  EXPECT_EQ(flops(false, PassKind::kW), matrix + patches);
}

TEST(FrozenModel, PassesGradientsToItsProjectorAndTrainsNothingElse) {
  const Transformer model = with_encoder(true);
  const LayerKind dense = LayerKind::kDense;
  EXPECT_EQ(flops_of(model, dense, PassKind::kB, true), flops_of(model, dense, PassKind::kB));
  EXPECT_EQ(flops_of(model, dense, PassKind::kW, true), 0);
  EXPECT_EQ(flops_of(model, LayerKind::kEmbedding, PassKind::kW, true), 2 * 576 * 1024. * 8192);
  LayerContext context{.micro_batch_size = 1, .seq_length = 4096};
  context.frozen = true;
  EXPECT_EQ(layer_memory(model, dense, context).dense_trained, 0);
  EXPECT_EQ(layer_memory(model, LayerKind::kEmbedding, context).dense_trained, 1024. * 8192);
  EXPECT_LT(layer_memory(model, dense, context).activation,
            layer_memory(model, dense, {.micro_batch_size = 1, .seq_length = 4096}).activation);
  EXPECT_EQ(layer_memory(model, dense, context).weight_stash, Bytes(0));
}

// The encoder trains whole: three forwards, though B of its attention computes more than two.
TEST(FrozenModel, CountsThreeForwardsOfAnEncoderThatTrains) {
  const Transformer model = with_encoder(false);
  Transformer larger = model;
  larger.encoder->num_layers = 8;
  const LayerContext frozen{.frozen = true};
  const double more =
      (model_flops(larger, 4096, true, frozen) - model_flops(model, 4096, true, frozen)).value();
  EXPECT_NEAR(more, 3 * 4 * flops_of(model, LayerKind::kEncoder, PassKind::kF), 1e-9 * more);
}

TEST(ReplicatedEncoder, IsWholeOnEveryTensorRank) {
  LayerContext context{.micro_batch_size = 1, .seq_length = 4096};
  context.tensor = 8;
  const auto forward = [&](bool replicated, int tensor) {
    context.tensor = tensor;
    return flops(layer_work(with_encoder(true, replicated), LayerKind::kEncoder, PassKind::kF,
                            context))
        .value();
  };
  EXPECT_EQ(forward(true, 8), forward(false, 1));
  EXPECT_NEAR(forward(false, 8), forward(false, 1) / 8, 1);
}

TEST(Encoder, IsRecomputedApartFromTheModel) {
  const Transformer model = with_encoder(false);
  const StageLayers stage{.first = 0, .layers = 4, .embedding = true};
  const auto again = [&](RecomputedLayers layers) {
    const KindCounts counts = count_recomputed(model, stage, layers);
    return std::pair(counts[LayerKind::kEncoder], counts[LayerKind::kDense]);
  };
  EXPECT_EQ(again({}), std::pair(4, 4));
  EXPECT_EQ(again({.encoder = false}), std::pair(0, 4));
  EXPECT_EQ(again({.first = 1}), std::pair(0, 1));
  EXPECT_EQ(again({.first = 1, .encoder = true}), std::pair(4, 1));
  EXPECT_EQ(again({.decoder = false, .encoder = true}), std::pair(4, 0));

  const RecomputeGranularity core = RecomputeModule::kMlpActivation;
  const auto activation = [&](RecomputedLayers layers) {
    const LayerContext context = modules_of(core, layers);
    return MemoryModel(model, context, {}).stage(stage).activation;
  };
  const LayerContext plain = modules_of({}, {});
  const LayerContext modules = modules_of(core, {});
  EXPECT_NEAR((activation({.encoder = false}) - activation({})).value(),
              4 * (layer_memory(model, LayerKind::kEncoder, plain).activation -
                   layer_memory(model, LayerKind::kEncoder, modules).activation)
                      .value(),
              1);
}

// Weights, gradients and two moments in fp32, of 80 layers.
void expect_sixteen_bytes_a_parameter(const LayerContext& context) {
  const Transformer model = llama3_70b();
  ParameterState state{.weight_bytes = 4};
  state.optimizer.main_params = 0;
  const DeviceMemory held =
      MemoryModel(model, context, state).device(std::vector<StageLayers>{{.layers = 80}});
  EXPECT_NEAR((held.weights + held.gradients + held.optimizer).value(),
              16 * 80 * parameters(model, LayerKind::kDense), 1e3);
}

TEST(Fp32, TakesSixteenBytesAParameter) {
  LayerContext context{.micro_batch_size = 1, .seq_length = 4096};
  context.precision = Precision::kFp32;
  expect_sixteen_bytes_a_parameter(context);
}

TEST(Fp32, MovesAndKeepsTwiceTheBytes) {
  LayerContext half{.micro_batch_size = 1, .seq_length = 4096};
  LayerContext whole = half;
  whole.precision = Precision::kFp32;
  EXPECT_DOUBLE_EQ(message_bytes(llama3_70b(), whole).value(),
                   2 * message_bytes(llama3_70b(), half).value());
  const Work work = layer_work(llama3_70b(), LayerKind::kDense, PassKind::kF, whole);
  for (const Matmul& each : work.matmuls) EXPECT_EQ(each.precision, Precision::kFp32);
  EXPECT_EQ(work.attention[0].precision, Precision::kFp32);
  EXPECT_EQ(layer_memory(llama3_70b(), LayerKind::kDense, whole).checkpoint,
            2 * layer_memory(llama3_70b(), LayerKind::kDense, half).checkpoint);
}

LayerContext autocast() {
  LayerContext context{.micro_batch_size = 1, .seq_length = 4096};
  context.fp32_weights = true;
  return context;
}

// Weights and what trains are in fp32, activations and messages in 16 bits.
TEST(Autocast, HoldsWeightsInFp32AndCopiesOfThem) {
  const LayerContext half{.micro_batch_size = 1, .seq_length = 4096};
  const Transformer model = llama3_70b();
  const LayerMemory kept = layer_memory(model, LayerKind::kDense, autocast());
  const LayerMemory plain = layer_memory(model, LayerKind::kDense, half);
  EXPECT_EQ(kept.weights, 2 * plain.weights);
  EXPECT_EQ(kept.checkpoint, plain.checkpoint);
  EXPECT_EQ(kept.weight_stash, plain.weight_stash);
  const double matrices = layer_parameters(model, LayerKind::kDense, {}).matmul;
  EXPECT_NEAR((kept.activation - plain.activation).value(), 2 * matrices, 1);
  EXPECT_EQ(message_bytes(model, autocast()), message_bytes(model, half));
}

TEST(Autocast, CastsEveryMatrixInForward) {
  const LayerContext half{.micro_batch_size = 1, .seq_length = 4096};
  const Transformer model = llama3_70b();
  const auto moved = [&](PassKind pass, const LayerContext& context) {
    return layer_work(model, LayerKind::kDense, pass, context).moved;
  };
  const double matrices = layer_parameters(model, LayerKind::kDense, {}).matmul;
  EXPECT_NEAR((moved(PassKind::kF, autocast()) - moved(PassKind::kF, half)).value(), 6 * matrices,
              1);
  EXPECT_EQ(moved(PassKind::kB, autocast()), moved(PassKind::kB, half));
  const Work work = layer_work(model, LayerKind::kDense, PassKind::kF, autocast());
  for (const Matmul& each : work.matmuls) EXPECT_EQ(each.precision, Precision::kBf16);
}

TEST(Autocast, TakesSixteenBytesAParameterThatTrains) {
  expect_sixteen_bytes_a_parameter(autocast());
}

// Adam reads weight, gradient and two moments, and writes all but the gradient.
TEST(Fp32, MovesTwentyEightBytesInAStep) {
  ParameterState state{.weight_bytes = 4};
  state.optimizer.main_params = 0;
  EXPECT_DOUBLE_EQ(step_bytes(state).update, 7 * 4);
}

}  // namespace
}  // namespace pipesim::trained_part_test
