// Optimizer states and activations that are kept in fewer bits, or on the host.
#include <array>
#include <gtest/gtest.h>
#include <string>

#include "models/layer_memory.h"
#include "models/layer_work.h"
#include "models/memory.h"
#include "models/module_offload.h"
#include "models/step_cost.h"
#include "tests/models/shapes.h"

namespace pipesim::kept_memory_test {
namespace {

using testing::deepseek_v3;
using testing::llama3_70b;
using testing::plain;

// DeepSeek-V3, arXiv 2412.19437, section 3.3.3: both moments in bf16, master weights in fp32.
OptimizerState bf16_moments() { return {.exp_avg = 2, .exp_avg_sq = 2}; }

LayerContext flash(int tokens) {
  LayerContext context;
  context.seq_length = tokens;
  return context;
}

Bytes kept(const Transformer& model, LayerKind kind, const LayerContext& context,
           const std::string& name) {
  for (const KeptTensor& tensor : kept_tensors(model, kind, context)) {
    if (tensor.name == name) return tensor.bytes;
  }
  ADD_FAILURE() << name;
  return {};
}

DeviceMemory held_of(const OptimizerState& optimizer, const Placement& placement) {
  ParameterState state{.data = 4, .distributed_optimizer = true};
  state.optimizer = optimizer;
  const Transformer model = llama3_70b();
  Layout layout;
  for (int stage = 0; stage < placement.devices(); ++stage) {
    layout.stages.push_back({.first = 20 * stage, .layers = 20});
  }
  return estimate_memory(model, flash(4096), layout, placement, state).devices.front();
}

double moved(const OptimizerState& optimizer, bool in_fp32) {
  ParameterState state{.gradients_in_fp32 = in_fp32};
  state.optimizer = optimizer;
  const StepBytes bytes = step_bytes(state);
  return bytes.update + bytes.gradients;
}

TEST(OptimizerStates, TakeWhatTheirPrecisionsSay) {
  const Placement four = Placement::looped(4, 1);
  const Bytes whole = held_of({}, four).optimizer;
  EXPECT_DOUBLE_EQ(held_of(bf16_moments(), four).optimizer / whole, 8.0 / 12);
  EXPECT_DOUBLE_EQ(held_of({.exp_avg = 1, .exp_avg_sq = 1}, four).optimizer / whole, 6.0 / 12);
  EXPECT_DOUBLE_EQ(held_of({.host_fraction = 0.75}, four).optimizer / whole, 0.25);
  EXPECT_EQ(held_of({.host_fraction = 1}, four).optimizer, Bytes(0));
}

TEST(OptimizerStates, MoveTheirBytesInAStep) {
  EXPECT_EQ(moved({}, true), 42);
  EXPECT_EQ(moved({}, false), 48);
  EXPECT_EQ(moved(bf16_moments(), true), 34);
  // Gradients of 2 bytes are read by Adam and the norm, and clipped: 8 in place of 16.
  EXPECT_EQ(moved({.reads_16_bit_gradients = true}, false), 34);
  // The remainder is read and written, and the weight too.
  EXPECT_EQ(moved({.main_params = 2, .remainders = true}, true), 40);
}

// DualPipe's two directions hold every stage twice: both copies' gradients are one sum.
TEST(OptimizerStates, AreDividedOverTheCopiesOfAStageToo) {
  const Placement one = Placement::looped(4, 1);
  const Placement both = Placement::bidirectional(4);
  const DeviceMemory once = held_of({}, one);
  const DeviceMemory twice = held_of({}, both);
  EXPECT_EQ(twice.gradients, 2 * once.gradients);
  EXPECT_EQ(twice.optimizer, once.optimizer);
  CostSetting setting;
  setting.state = {.data = 4, .copies = 2};
  EXPECT_EQ(dense_groups(setting, 8).shards.ranks, 8);
  EXPECT_EQ(dense_groups(setting, 8).shards.ranks_per_node, 4);
  EXPECT_EQ(dense_groups(setting, 8).replicas.ranks, 1);
  setting.state.shard_degree = 2;
  EXPECT_EQ(dense_groups(setting, 8).shards.ranks, 2);
  EXPECT_EQ(dense_groups(setting, 8).replicas.ranks, 4);
}

Hardware with_host() {
  Hardware hardware;
  hardware.interconnect.gpus_per_node = 8;
  hardware.host = {.alone = BytesPerSecond(50e9),
                   .duplex = BytesPerSecond(40e9),
                   .gpus_per_switch = 2,
                   .memory = {},
                   .update = BytesPerSecond(80e9)};
  return hardware;
}

TEST(OptimizerStates, OnTheHostWaitForTheLinkAndTheUpdate) {
  const Hardware hardware = with_host();
  CostSetting setting;
  const auto seconds = [&](OptimizerState optimizer) {
    setting.state.optimizer = optimizer;
    return host_optimizer_seconds(setting, {.dense = 1e9}, hardware).value();
  };
  EXPECT_EQ(seconds({}), 0);
  // 4 bytes go out and 2 come back at 25 GB/s, and 30 are moved at 10 GB/s.
  EXPECT_NEAR(seconds({.host_fraction = 1}), 0.16 + 0.08 + 3, 1e-12);
  EXPECT_NEAR(seconds({.host_fraction = 0.5}), 1.62, 1e-12);
  EXPECT_NEAR(seconds({.host_fraction = 1, .overlaps_host = true}), 3, 1e-12);
}

// 12 bytes come at 20 GB/s while 12 of others go; the GPU updates all, and the host keeps no
// gradients.
TEST(OptimizerStates, ThatAreSwappedPassTheLinkBothWays) {
  const Hardware hardware = with_host();
  CostSetting setting;
  setting.state.optimizer = {.host_fraction = 1, .swapped = true};
  EXPECT_NEAR(host_optimizer_seconds(setting, {.dense = 1e9}, hardware).value(), 0.6, 1e-12);
  EXPECT_EQ(setting.state.optimizer.device_updates(), 1);
  EXPECT_EQ(setting.state.optimizer.device_bytes(), 0);
  EXPECT_EQ(setting.state.optimizer.host_bytes(), 12);
}

// Section 3.3.3: inputs of SwiGLU in fp8; the input of the linear layer behind attention in E5M6.
TEST(KeptActivations, AreSmallerInFewerBits) {
  const Transformer model = deepseek_v3();
  LayerContext context = flash(4096);
  context.precision = Precision::kFp8;
  LayerContext fewer = context;
  fewer.fp8_activation_input = true;
  fewer.attention_output_bits = 12;
  for (const char* name :
       {"experts before their activation", "shared experts before their activation"}) {
    EXPECT_EQ(kept(model, LayerKind::kMoe, context, name),
              2 * kept(model, LayerKind::kMoe, fewer, name));
  }
  EXPECT_EQ(kept(model, LayerKind::kDense, fewer, "MLP before its activation"),
            Bytes(4096.0 * 2 * 18432));
  EXPECT_EQ(kept(model, LayerKind::kMoe, fewer, "output of attention"),
            Bytes(1.5 * 4096 * 128 * 128));
  // In place of 3 bytes: bf16 for attention's backward, fp8 for the gradient of its projection.
  const Bytes saved = layer_memory(model, LayerKind::kDense, context).activation -
                      layer_memory(model, LayerKind::kDense, fewer).activation;
  EXPECT_EQ(saved, Bytes(4096 * (1.5 * 128 * 128 + 2 * 18432)));
}

TEST(KeptActivations, GoToTheExpertsInFp8AndComeBackInBf16) {
  LayerContext context = flash(4096);
  context.expert = 8;
  const auto exchanged = [&](PassKind pass) {
    std::array<Bytes, 2> ways;
    size_t next = 0;
    for (const Collective& each :
         layer_work(deepseek_v3(), LayerKind::kMoe, pass, context).collectives) {
      if (each.group == Group::kExpert) ways.at(next++) = each.bytes;
    }
    return ways;
  };
  const double rows = 4096.0 * 8 * 7168;
  for (const PassKind pass : {PassKind::kF, PassKind::kB}) {
    context.fp8_dispatch = pass == PassKind::kB;
    context.fp8_combine_gradient = pass == PassKind::kF;
    EXPECT_EQ(exchanged(pass)[0], Bytes(2 * rows));
    context.fp8_dispatch = context.fp8_combine_gradient = true;
    EXPECT_EQ(exchanged(pass)[0], Bytes((1 + 4.0 / 128) * rows));
    EXPECT_EQ(exchanged(pass)[1], Bytes(2 * rows));
  }
}

TEST(OffloadedModules, LeaveTheirInputs) {
  const Transformer model = deepseek_v3();
  const LayerContext context = flash(4096);
  const double tokens = 4096;
  struct Leaves {
    OffloadModule module;
    double bytes;  // a token
  };
  const Bytes whole = layer_memory(model, LayerKind::kMoe, context).activation;
  OffloadModules all;
  Bytes sum;
  for (const auto& [module, bytes] :
       {Leaves{OffloadModule::kAttentionNorm, 2 * 7168},
        Leaves{OffloadModule::kQkvLinear, 2 * 7168},
        Leaves{OffloadModule::kCoreAttention, 2.0 * 128 * (192 + 192 + 128)},
        Leaves{OffloadModule::kAttentionProjection, 2.0 * 128 * 128},
        Leaves{OffloadModule::kMlpNorm, 2 * 7168},
        Leaves{OffloadModule::kExpertFc1, 2.0 * 8 * 7168},
        Leaves{OffloadModule::kMoeActivation, 2.0 * 8 * 2 * 2048}}) {
    LayerContext one = context;
    one.offloaded = module;
    const LayerMemory memory = layer_memory(model, LayerKind::kMoe, one);
    EXPECT_EQ(memory.offloaded, Bytes(tokens * bytes)) << to_text(module, "+");
    EXPECT_EQ(memory.activation + memory.offloaded, whole);
    all = all | module;
    sum += memory.offloaded;
  }
  LayerContext every = context;
  every.offloaded = all;
  EXPECT_EQ(layer_memory(model, LayerKind::kMoe, every).offloaded, sum);
  EXPECT_EQ(layer_memory(model, LayerKind::kDense, every).offloaded,
            sum - Bytes(tokens * (2.0 * 8 * 7168 + 2.0 * 8 * 2 * 2048)));
  // A recomputed part is not kept; a layer that runs again keeps nothing.
  every.recompute = RecomputeModule::kLayerNorm;
  EXPECT_EQ(layer_memory(model, LayerKind::kMoe, every).offloaded, sum - Bytes(tokens * 2 * 7168));
  every.recompute = RecomputeGranularity::kFull;
  EXPECT_EQ(layer_memory(model, LayerKind::kMoe, every).offloaded, Bytes(0));
}

TEST(OffloadedModules, ComeBackTwoLayersAtATime) {
  const Transformer model = llama3_70b();
  LayerContext context = flash(4096);
  const auto buffers = [&](int layers) {
    const Placement one = Placement::looped(1, 1);
    const Layout layout{{{.first = 0, .layers = layers}}};
    return estimate_memory(model, context, layout, one, {}).devices.front().buffers;
  };
  const Bytes before = buffers(4);
  context.offloaded = OffloadModule::kAttentionNorm;
  EXPECT_EQ(buffers(4) - before, Bytes(2 * 4096.0 * 2 * 8192));
  EXPECT_EQ(buffers(1) - before, Bytes(4096.0 * 2 * 8192));
}

TEST(OffloadedModules, MakePassesWaitForTheirCopies) {
  StageCost stage;
  stage.forward = Seconds(1);
  stage.backward_input = Seconds(1);
  stage.backward_weight = Seconds(1);
  stage.overlapped = Seconds(2);
  CostSetting setting;
  StageCost hidden = stage;
  wait_for_copies(Seconds(0.9), setting, hidden);
  EXPECT_EQ(hidden.forward, stage.forward);
  EXPECT_EQ(hidden.backward_input, stage.backward_input);
  StageCost apart = stage;
  wait_for_copies(Seconds(3), setting, apart);
  EXPECT_EQ(apart.forward, Seconds(3));
  EXPECT_EQ(apart.backward_input, Seconds(3));
  EXPECT_EQ(apart.backward_weight, Seconds(1));
  EXPECT_EQ(*apart.overlapped, Seconds(3));
  setting.fused_backward = true;
  wait_for_copies(Seconds(3), setting, stage);
  EXPECT_EQ(stage.backward_input + stage.backward_weight, Seconds(3));
}

}  // namespace
}  // namespace pipesim::kept_memory_test
