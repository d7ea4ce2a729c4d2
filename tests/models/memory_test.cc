#include "models/memory.h"

#include <gtest/gtest.h>

#include "models/layer_memory.h"
#include "models/layer_parameters.h"
#include "models/temporaries.h"
#include "tests/models/shapes.h"

namespace pipesim::memory_test {
namespace {

using testing::deepseek_v3;
using testing::gpt;
using testing::llama3_70b;
using testing::mixtral;
using testing::plain;

// Layers of `stages` devices of a plain pipeline, evenly.
MemoryEstimate even(const Transformer& model, const LayerContext& context,
                    const ParameterState& state, int devices) {
  const Placement placement = Placement::looped(devices, 1);
  return estimate_memory(model, context, even_layout(model, placement, {}), placement, state);
}

// Korthikanti 2023, Figure 1: GiB of parameters and optimizer at 18 bytes, embedding left out.
TEST(Memory, HoldsTheParametersOfKorthikantisFigure1) {
  struct Row {
    int layers, hidden, heads, devices;
    double gib;
  };
  const std::vector<Row> rows{{48, 6144, 64, 1, 45.5625},
                              {96, 12288, 96, 8, 45.5625},
                              {105, 20480, 128, 35, 31.640625},
                              {128, 25600, 160, 64, 32.958984375}};
  for (const Row& row : rows) {
    const MemoryEstimate of =
        even(gpt(row.layers, row.hidden, row.heads), plain(1, 2048, 8), {}, row.devices);
    const DeviceMemory& first = of.devices.front();
    // The figure counts 12 h^2 a layer: norms and biases are 0.1% beside that.
    EXPECT_NEAR((first.weights + first.gradients + first.optimizer) / kGiB / row.gib, 1, 0.002);
  }
}

TEST(Memory, TakesEighteenOrSixteenBytesAParameter) {
  const Transformer model = gpt(8, 512, 8);
  const double parameters = total_parameters(model);
  for (const bool fp32 : {true, false}) {
    const DeviceMemory held =
        even(model, plain(1, 128), {.gradients_in_fp32 = fp32}, 1).devices.front();
    const Bytes states = held.weights + held.gradients + held.optimizer + held.vocabulary;
    EXPECT_NEAR(states.value(), (fp32 ? 18 : 16) * parameters, 1e-3);
  }
}

TEST(Memory, HoldsSixteenBitGradientsBesideThoseInFp32WhereTheFrameworkDoes) {
  const Transformer model = gpt(8, 512, 8);
  const auto states = [&](const ParameterState& state) {
    const DeviceMemory held = even(model, plain(1, 128), state, 1).devices.front();
    return (held.weights + held.gradients + held.optimizer + held.vocabulary).value();
  };
  EXPECT_NEAR(states({.gradient_copy = 2}), 20 * total_parameters(model), 1e-3);
  EXPECT_NEAR(states({.gradients_in_fp32 = false, .gradient_copy = 2}),
              16 * total_parameters(model), 1e-3);
}

// Logits as they come beside the softmax of 4 bytes that is kept.
TEST(Memory, TakesWhatALossHoldsOfALogitFromTheFramework) {
  LayerContext context = plain(1, 128);
  const Transformer model = gpt(8, 512, 8);
  const double logits = 128.0 * model.vocab_size;
  EXPECT_DOUBLE_EQ(temporaries(model, LayerKind::kOutput, context).value(), 6 * logits);
  context.loss_bytes = 6;
  EXPECT_DOUBLE_EQ(temporaries(model, LayerKind::kOutput, context).value(), 2 * logits);
}

TEST(Memory, DividesTheOptimizerOverDataAndContextRanks) {
  const Transformer model = llama3_70b();
  LayerContext context{.micro_batch_size = 1, .seq_length = 8192, .context = 2};
  const DeviceMemory whole = even(model, context, {.data = 4}, 8).devices[3];
  const DeviceMemory divided =
      even(model, context, {.data = 4, .distributed_optimizer = true}, 8).devices[3];
  EXPECT_DOUBLE_EQ((whole.optimizer / divided.optimizer), 8);
  EXPECT_EQ(whole.gradients, divided.gradients);
  EXPECT_EQ(whole.weights, divided.weights);
}

TEST(Memory, DividesExpertsStateOverTheRanksThatHoldThem) {
  const Transformer model = mixtral();
  const LayerContext context{.micro_batch_size = 1, .seq_length = 4096, .expert = 4};
  const ParameterState state{.data = 8, .distributed_optimizer = true};
  const LayerMemory layer = layer_memory(model, LayerKind::kMoe, context);
  const DeviceMemory held = even(model, context, state, 8).devices[3];  // four layers
  EXPECT_DOUBLE_EQ(held.optimizer.value(),
                   4 * 12 * (layer.dense_parameters / 8 + layer.expert_parameters / 2));
}

TEST(Memory, HoldsATiedMatrixOnBothEndsOrOnceWhereTheyMeet) {
  const Transformer model = gpt(16, 1024, 16);
  const double matrix = 18.0 * model.vocab_size * model.hidden_size;
  const MemoryEstimate line = even(model, plain(1, 128), {}, 4);
  EXPECT_NEAR(line.devices.front().vocabulary.value(), matrix + 18.0 * 2048 * 1024, 1);
  EXPECT_EQ(line.devices[1].vocabulary, Bytes(0));
  EXPECT_NEAR(line.devices.back().vocabulary.value(), matrix + 18.0 * 2 * 1024, 1);
  const Placement vee = Placement::vee(4);
  const auto of = [&](const Transformer& shape) {
    return estimate_memory(shape, plain(1, 128), even_layout(shape, vee, {}), vee, {})
        .devices.front()
        .vocabulary.value();
  };
  EXPECT_NEAR(of(model), matrix + 18.0 * (2048 + 2) * 1024, 1);
  Transformer untied = model;
  untied.tied_embeddings = false;
  EXPECT_NEAR(of(untied), 2 * matrix + 18.0 * (2048 + 2) * 1024, 1);
}

TEST(Memory, HoldsBothCopiesOfAStageInTwoDirections) {
  const Transformer model = gpt(8, 512, 8);
  const Placement both = Placement::bidirectional(4);
  const MemoryEstimate of =
      estimate_memory(model, plain(1, 128), even_layout(model, both, {}), both, {});
  const MemoryEstimate one = even(model, plain(1, 128), {}, 4);
  EXPECT_DOUBLE_EQ(of.devices[0].weights / one.devices[0].weights, 2);
}

TEST(Memory, HoldsWhatUnequalNumbersOfStagesHold) {
  const Transformer model = gpt(9, 512, 8);
  const Placement place = Placement::custom(std::vector{0, 1, 0});
  const MemoryEstimate of =
      estimate_memory(model, plain(1, 128), even_layout(model, place, {}), place, {});
  const MemoryEstimate three = even(model, plain(1, 128), {}, 3);
  ASSERT_EQ(of.devices.size(), 2U);
  EXPECT_EQ(of.devices[1].weights, three.devices[1].weights);
  EXPECT_EQ(of.devices[0].weights, three.devices[0].weights + three.devices[2].weights);
}

TEST(Memory, CopiesTheMatricesWhereMtpModulesStandWithoutThem) {
  const Transformer model = deepseek_v3();
  const LayerContext context{.micro_batch_size = 1, .seq_length = 4096};
  const Placement placement = Placement::looped(3, 1);
  const auto vocabulary = [&](const char* layout, size_t device) {
    return estimate_memory(model, context, parse_megatron_layout(model, layout), placement, {})
        .devices[device]
        .vocabulary.value();
  };
  const double matrix = 18.0 * model.vocab_size * model.hidden_size;
  EXPECT_NEAR(vocabulary("Et*30|t*31|mL", 2), 2 * matrix + 18.0 * 7168, 1);
  EXPECT_NEAR(vocabulary("Et*30|t*31m|L", 1), 2 * matrix, 1);
}

TEST(Memory, HoldsALayerAtATimeUnderFullRecompute) {
  const Transformer model = gpt(12, 1024, 8);
  const LayerContext context = plain(1, 1024);
  const LayerMemory layer = layer_memory(model, LayerKind::kDense, context);
  const Placement four = Placement::looped(4, 1);
  const MemoryEstimate memory =
      estimate_memory(model, context, even_layout(model, four, {}), four, {});
  const StageMemory& stage = memory.stages[1];
  EXPECT_DOUBLE_EQ(stage.until_backward(false).value(), 3 * layer.activation.value());
  EXPECT_DOUBLE_EQ(stage.until_backward(true).value(),
                   2 * layer.checkpoint.value() + layer.activation.value());
}

TEST(Memory, MakesModulesAgainBesideWhatIsKept) {
  const Transformer model = llama3_70b();
  const Placement four = Placement::looped(4, 1);
  LayerContext context = plain(1, 4096);
  const auto buffers = [&] {
    return estimate_memory(model, context, even_layout(model, four, {}), four, {})
        .devices[1]
        .buffers;
  };
  const Bytes kept = buffers();
  context.recompute = RecomputeModule::kMlp;
  EXPECT_DOUBLE_EQ((buffers() - kept).value(), 2.0 * 4096 * 3 * 28672);
}

TEST(Memory, SumsActivationsOfAStagesLayers) {
  const Transformer model = gpt(4, 1024, 16);
  const MemoryEstimate of = even(model, plain(2, 512), {}, 2);
  const LayerMemory layer = layer_memory(model, LayerKind::kDense, plain(2, 512));
  const LayerMemory output = layer_memory(model, LayerKind::kOutput, plain(2, 512));
  EXPECT_EQ(of.stages[1].activation, 2 * layer.activation + output.activation);
  EXPECT_EQ(of.stages[1].weight_stash, 2 * layer.weight_stash + output.weight_stash);
  EXPECT_EQ(of.stages[1].checkpoint, 2 * layer.checkpoint + output.checkpoint);
}

TEST(Memory, KeepsTemporariesBesideActivations) {
  const Transformer model = gpt(4, 1024, 16, 50000);
  LayerContext context = plain(2, 512);
  context.flash_attention = true;
  const double sbh = 2.0 * 512 * 1024;
  // Gradients in the MLP: 2h of its output, 8h after and 8h before the activation.
  EXPECT_DOUBLE_EQ(temporaries(model, LayerKind::kDense, context).value(), 18 * sbh);
  context.flash_attention = false;
  const double scores = 2.0 * 2 * 512 * 512 * 16;
  EXPECT_DOUBLE_EQ(temporaries(model, LayerKind::kDense, context).value(), 18 * sbh + scores);
  // Long sequences: backward in attention, when the MLP's 21h are free again.
  context.seq_length = 8192;
  EXPECT_DOUBLE_EQ(temporaries(model, LayerKind::kDense, context).value(),
                   16 * (3 * scores * 16 - 19 * sbh));
  EXPECT_DOUBLE_EQ(temporaries(model, LayerKind::kOutput, context).value(), 6.0 * 2 * 8192 * 50000);
}

TEST(Memory, HoldsTheEmbeddingsGradientWhenItsStageIsFree) {
  const Transformer model = gpt(4, 1024, 16, 400000);
  const MemoryEstimate of = even(model, plain(1, 128), {}, 4);
  const double messages = 3 * message_bytes(model, plain(1, 128)).value();
  EXPECT_DOUBLE_EQ(of.devices[0].buffers.value(),
                   messages + 2.0 * 400000 * 1024 - of.stages[0].activation.value());
  EXPECT_DOUBLE_EQ(of.devices[1].buffers.value(),
                   messages + temporaries(model, LayerKind::kDense, plain(1, 128)).value());
}

TEST(Memory, NamesSizesThatDoNotStandTogether) {
  EXPECT_EQ(fault_of(mixtral(), {.seq_length = 1, .expert = 4}, {.data = 8}), "");
  EXPECT_NE(
      fault_of(mixtral(), {.seq_length = 1, .expert = 8}, {.data = 4}).find("does not divide"),
      std::string::npos);
  EXPECT_NE(fault_of(llama3_70b(), {.seq_length = 1, .expert = 2}, {}).find("no experts"),
            std::string::npos);
}

TEST(NearestChange, TakesTheFirstThatFitsInItsOrder) {
  MemorySetting now;
  now.context.micro_batch_size = 2;
  now.state.data = 4;
  now.pipeline = 8;

  // Bytes that every kind of change leaves of 100.
  const auto change = [&](double optimizer, double selective, double batch, double full,
                          double tensor, double pipeline, double sharded = 100) {
    const auto found = nearest_change(now, Bytes(50), [&](const MemorySetting& setting) {
      double bytes = 100;
      if (setting.state.distributed_optimizer) bytes = optimizer;
      if (setting.context.recompute == RecomputeGranularity::kSelective) bytes = selective;
      if (setting.context.micro_batch_size == 1) bytes = batch;
      if (setting.context.recompute == RecomputeGranularity::kFull) bytes = full;
      if (setting.context.tensor == 2) bytes = tensor;
      if (setting.pipeline == 16) bytes = pipeline;
      if (setting.state.sharded_weights) bytes = sharded;
      return bytes < 0 ? std::nullopt : std::optional(Bytes(bytes));
    });
    return found ? found->words : "none";
  };
  EXPECT_EQ(change(50, 40, 40, 40, 40, 40), "use_distributed_optimizer");
  EXPECT_EQ(change(51, 40, 40, 40, 40, 40), "recompute: selective");
  EXPECT_EQ(change(51, 60, 40, 40, 40, 40), "micro_batch_size 1");
  EXPECT_EQ(change(51, 60, 60, 40, 40, 40), "recompute: full");
  EXPECT_EQ(change(51, 60, 60, 60, 40, 40), "tensor_model_parallel_size 2");
  EXPECT_EQ(change(51, 60, 60, 60, -1, 40), "pipeline_model_parallel_size 16");
  EXPECT_EQ(change(51, 60, 60, 60, -1, 60, 40),
            "data_parallel_sharding_strategy: optim_grads_params");
  EXPECT_EQ(change(51, 60, 60, 60, -1, 60), "none");
}

TEST(NearestChange, HalvesDataRanksWhereTensorRanksDouble) {
  MemorySetting now;
  now.state.data = 4;
  const auto found =
      nearest_change(now, Bytes(1), [](const MemorySetting& setting) -> std::optional<Bytes> {
        if (setting.context.tensor == 1) return std::nullopt;
        return Bytes(setting.state.data == 2 ? 1 : 2);
      });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->setting.state.data, 2);
}

}  // namespace
}  // namespace pipesim::memory_test
