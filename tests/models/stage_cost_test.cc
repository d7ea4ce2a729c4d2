#include "models/stage_cost.h"

#include <gtest/gtest.h>

#include "models/layer_parameters.h"
#include "models/layer_work.h"
#include "models/step_cost.h"
#include "tests/models/shapes.h"

namespace pipesim::stage_cost_test {
namespace {

// A GPU of one multiprocessor that reaches its peak at once and waits for no memory, so that sums
// can be made by hand; links of 1 GB/s.
Hardware simple() {
  Hardware hardware;
  Gpu& gpu = hardware.gpu;
  gpu.peak = {FlopsPerSecond(1e12), FlopsPerSecond(2e12)};
  gpu.memory_bandwidth = BytesPerSecond(1e30);
  gpu.launch = Seconds(1e-6);
  gpu.matmul.tail = 0;
  hardware.interconnect.gpus_per_node = 8;
  hardware.interconnect.nics_per_node = 8;
  hardware.interconnect.nic_bandwidth = BytesPerSecond(1e9);
  for (CollectiveCurve& curve : hardware.interconnect.curves) {
    curve.bandwidth = BytesPerSecond(1e9);
  }
  return hardware;
}

CostSetting setting(int tensor = 1, bool sequence = false) {
  CostSetting setting;
  setting.context = testing::plain(1, 1024, tensor, sequence);
  return setting;
}

Transformer small() { return testing::gpt(4, 512, 8, 1024); }

// A launch for each kernel, and for each collective of more than one rank.
double operations(PassKind pass, const CostSetting& setting) {
  const Work work = layer_work(small(), LayerKind::kDense, pass, setting.context);
  const size_t kernels = work.matmuls.size() + work.attention.size() + work.collectives.size();
  return static_cast<double>(kernels) + work.kernels;
}

TEST(Host, HoldsAPassUpOnlyWhereItIsSlowerThanTheGpu) {
  CostSetting with = setting(2, true);
  const LayerCost alone = layer_cost(small(), LayerKind::kDense, with, simple());
  EXPECT_EQ(alone.forward.host, Seconds(0));
  with.software.operation[LaunchMode::kEager] = Seconds(1e-9);
  const LayerCost hidden = layer_cost(small(), LayerKind::kDense, with, simple());
  EXPECT_EQ(hidden.forward.total(), alone.forward.total());
  with.software.operation[LaunchMode::kEager] = Seconds(1);
  const LayerCost held = layer_cost(small(), LayerKind::kDense, with, simple());
  EXPECT_DOUBLE_EQ(held.forward.total().value(), operations(PassKind::kF, with));
  EXPECT_DOUBLE_EQ(held.backward_input.total().value(), operations(PassKind::kB, with));
  EXPECT_EQ(held.forward.on_gpu(), alone.forward.on_gpu());
  with.software.launch = LaunchMode::kCudaGraphs;
  EXPECT_EQ(layer_cost(small(), LayerKind::kDense, with, simple()).forward.total(),
            alone.forward.total());
}

TEST(LayerCost, RunsAllButTheLastMatmulAgainWhereRecomputingStopsEarly) {
  CostSetting own = setting();
  const LayerCost whole = layer_cost(small(), LayerKind::kDense, own, simple());
  EXPECT_EQ(whole.again.total(), whole.forward.total());
  own.software.early_stop = true;
  const LayerCost early = layer_cost(small(), LayerKind::kDense, own, simple());
  // 8 sbh^2 and a launch less.
  EXPECT_NEAR((whole.again.total() - early.again.total()).value(),
              2 * 1024 * 512.0 * 2048 / 1e12 * 1 + 1e-6, 1e-12);
  EXPECT_EQ(early.forward.total(), whole.forward.total());
}

// Two tensor ranks have less for the GPU to do and as much for the host.
TEST(Host, IsTheSameForEveryNumberOfTensorRanks) {
  CostSetting two = setting(2, true);
  CostSetting four = setting(4, true);
  two.software.operation[LaunchMode::kEager] = four.software.operation[LaunchMode::kEager] =
      Seconds(1);
  const auto forward = [](const CostSetting& of) {
    return layer_cost(small(), LayerKind::kDense, of, simple()).forward;
  };
  EXPECT_EQ(forward(two).total(), forward(four).total());
  EXPECT_GT(forward(two).matmul, forward(four).matmul);
}

TEST(LayerCost, KeepsTheShareOfItsGenerationOfAttention) {
  Hardware hardware = simple();
  hardware.gpu.attention_kernels[AttentionKernel::kFlash1] = {0.5, 0.25};
  hardware.gpu.attention_kernels[AttentionKernel::kFlash3] = {0, 0};
  const auto with = [&](AttentionKernel kernel) {
    CostSetting own = setting();
    own.context.flash_attention = true;
    own.software.attention = kernel;
    return layer_cost(small(), LayerKind::kDense, own, hardware);
  };
  const LayerCost curve = with(AttentionKernel::kCudnn);
  const LayerCost first = with(AttentionKernel::kFlash1);
  EXPECT_DOUBLE_EQ(first.forward.attention.value(), curve.forward.attention.value() / 0.5);
  EXPECT_DOUBLE_EQ(first.backward_input.attention.value(),
                   curve.backward_input.attention.value() / 0.25);
  // One that the GPU does not run is replaced.
  EXPECT_EQ(with(AttentionKernel::kFlash3).forward.attention, curve.forward.attention);
}

TEST(LayerCost, IsTheFlopsOverThePeakAndALaunchForEveryKernel) {
  const LayerCost cost = layer_cost(small(), LayerKind::kDense, setting(), simple());
  // Zero Bubble's Table 1: sbh(24h + 4s), sbh(24h + 8s), 24sbh^2, at 1 TFLOP/s.
  EXPECT_NEAR(cost.forward.matmul.value(), 1024 * 512.0 * (24 * 512 + 4 * 1024) / 1e12, 1e-12);
  EXPECT_NEAR(cost.backward_input.matmul.value(), 1024 * 512.0 * (24 * 512 + 8 * 1024) / 1e12,
              1e-12);
  EXPECT_NEAR(cost.backward_weight.matmul.value(), 24 * 1024 * 512.0 * 512 / 1e12, 1e-12);
  // Six matmuls, of which W has four, and the memory-bound kernels.
  const Work forward = layer_work(small(), LayerKind::kDense, PassKind::kF, setting().context);
  EXPECT_NEAR(cost.forward.launches.value(), (6 + forward.kernels) * 1e-6, 1e-15);
  EXPECT_EQ(cost.forward.collectives(), Seconds(0));
  EXPECT_NEAR(cost.forward.total().value(), (cost.forward.matmul + cost.forward.launches).value(),
              1e-12);
}

TEST(LayerCost, IsCutByTensorRanksWhichAddCollectives) {
  const LayerCost one = layer_cost(small(), LayerKind::kDense, setting(), simple());
  const LayerCost two = layer_cost(small(), LayerKind::kDense, setting(2), simple());
  EXPECT_NEAR(two.forward.matmul.value(), one.forward.matmul.value() / 2, 1e-12);
  EXPECT_NEAR(two.backward_weight.matmul.value(), one.backward_weight.matmul.value() / 2, 1e-12);
  // Two all-reduces of 2 x 1024 x 512 bytes between two ranks: each sends all of it once.
  EXPECT_NEAR(two.forward.tensor.value(), 2 * 1048576 / 1e9, 1e-12);
  EXPECT_EQ(two.forward.hidden, Seconds(0));
}

TEST(LayerCost, HidesNoMoreThanThereIs) {
  for (const bool fused : {false, true}) {
    for (const bool overlap : {false, true}) {
      CostSetting asked = setting(4, true);
      asked.fused_backward = fused;
      asked.overlap.tensor = overlap;
      const LayerCost cost = layer_cost(small(), LayerKind::kDense, asked, simple());
      for (const PassCost& pass : {cost.forward, cost.backward_input, cost.backward_weight}) {
        EXPECT_GE(pass.hidden, Seconds(0));
        EXPECT_LE(pass.hidden, pass.collectives());
        EXPECT_GE(pass.total(), pass.compute());
      }
      EXPECT_EQ(cost.forward.hidden > Seconds(0), overlap);
      EXPECT_GT(cost.backward_weight.hidden, Seconds(0));  // the gather, behind B
    }
  }
}

TEST(LayerCost, GrowsWithBatchSequenceAndWidth) {
  const auto forward = [](const Transformer& model, int batch, int seq) {
    CostSetting asked;
    asked.context = testing::plain(batch, seq);
    return layer_cost(model, LayerKind::kDense, asked, simple()).forward.total();
  };
  const Seconds base = forward(small(), 1, 1024);
  EXPECT_GT(forward(small(), 2, 1024), base);
  EXPECT_GT(forward(small(), 1, 2048), base);
  EXPECT_GT(forward(testing::gpt(4, 1024, 16, 1024), 1, 1024), base);
}

TEST(StageCost, SumsItsLayers) {
  const Transformer model = small();
  const LayerCosts costs = layer_costs(model, setting(), simple());
  const StagePasses passes = stage_passes(model, {.first = 2, .layers = 2, .output = true}, costs);
  const auto& dense = costs[LayerKind::kDense].forward;
  const auto& output = costs[LayerKind::kOutput].forward;
  EXPECT_NEAR(passes.forward.total().value(), (2 * dense.total() + output.total()).value(), 1e-15);
  EXPECT_NEAR(passes.recompute.total().value(), 2 * dense.total().value(), 1e-15);
}

TEST(StageCost, FillsEveryStageByItsOwnLayers) {
  Transformer model = small();
  model.num_layers = 12;
  model.experts = Experts{.num_experts = 4, .experts_per_token = 2, .ffn_hidden_size = 512};
  model.experts->first_dense_layers = 3;
  const Placement place = Placement::looped(3, 2);
  const Layout layout = even_layout(model, place, {});
  const LayerCosts costs = layer_costs(model, setting(), simple());
  std::vector<StageCost> stages(6);
  fill_stage_seconds(model, setting(), simple(), layout, place, costs, stages);
  for (size_t vs = 0; vs < stages.size(); ++vs) {
    const StagePasses passes = stage_passes(model, layout.stages[vs], costs);
    EXPECT_EQ(stages[vs].forward, passes.forward.total()) << vs;
    EXPECT_EQ(stages[vs].backward_input, passes.backward_input.total()) << vs;
    EXPECT_EQ(stages[vs].backward_weight, passes.backward_weight.total()) << vs;
    EXPECT_EQ(stages[vs].recompute, passes.recompute.total()) << vs;
  }
  EXPECT_NE(stages[0].forward, stages[1].forward);
  EXPECT_NE(stages[1].forward, stages[2].forward);
  EXPECT_EQ(stages[2].overlapped, stages[4].overlapped);
}

TEST(StageCost, SendsAPartFromEveryTensorRankUnderSequenceParallelism) {
  // 2 x 1024 x 512 bytes at 1 GB/s within a node.
  EXPECT_NEAR(message_seconds(small(), setting(), simple(), {}, 0, 1).value(), 1048576 / 1e9,
              1e-12);
  EXPECT_NEAR(message_seconds(small(), setting(4, true), simple(), {}, 0, 1).value(), 1048576 / 4e9,
              1e-12);
  CostSetting scattered = setting(4);
  scattered.context.scatter_sends = true;
  // A quarter sent, and three quarters gathered.
  EXPECT_NEAR(message_seconds(small(), scattered, simple(), {}, 0, 1).value(), 1048576 / 1e9,
              1e-12);
}

TEST(StageCost, SendsFromTheLastDeviceToTheFirstAsFarAsTheyAreApart) {
  // Nodes of eight: devices 0 and 1 share one, the ends of a loop of sixteen do not, of eight do.
  Hardware hardware = simple();
  hardware.interconnect.nic_bandwidth = BytesPerSecond(1e8);
  const auto seconds = [&hardware](int from, int to) {
    return message_seconds(small(), setting(), hardware, {}, from, to);
  };
  EXPECT_EQ(seconds(7, 0), seconds(0, 1));
  EXPECT_EQ(seconds(15, 0), seconds(7, 8));
  EXPECT_EQ(seconds(0, 15), seconds(15, 0));
  EXPECT_GT(seconds(15, 0), seconds(0, 1));
}

TEST(StageCost, KnowsWhatOfAMessageIsNotItsBytes) {
  Hardware slow = simple();
  slow.interconnect.nic_latency = Seconds(5e-6);
  CostSetting crossing = setting(8, true);
  EXPECT_NEAR(message_latency(small(), crossing, slow, {}, 0, 1).value(), 5e-6, 1e-15);
  EXPECT_NEAR(message_seconds(small(), crossing, slow, {}, 0, 1).value(), 5e-6 + 1048576 / 8e9,
              1e-12);
  crossing.context.sequence_parallel = false;
  crossing.context.scatter_sends = true;
  EXPECT_NEAR(message_latency(small(), crossing, slow, {}, 0, 1).value(), 5e-6 + 1048576 * 7 / 8e9,
              1e-12)
      << "seven eighths are gathered";
}

TEST(StepCost, ShardsTheOptimizerAndHidesWhatIsAskedFor) {
  const Transformer model = small();
  const Placement place = Placement::looped(1, 1);
  const Layout layout = even_layout(model, place, {});
  const auto step = [&](bool sharded, bool overlap) {
    CostSetting asked = setting();
    asked.state = {.data = 4, .gradients_in_fp32 = true, .distributed_optimizer = sharded};
    asked.overlap.gradient_reduce = asked.overlap.parameter_gather = overlap;
    return step_cost(model, asked, simple(), layout, place, layer_costs(model, asked, simple()), 0);
  };
  const double parameters = total_parameters(model);
  // An all-reduce of 4 bytes a parameter sends 2 x 3/4 of them.
  EXPECT_NEAR(step(false, false)[ClosingTerm::kReduce].value(), 1.5 * 4 * parameters / 1e9, 1e-9);
  EXPECT_NEAR(step(true, false)[ClosingTerm::kReduce].value(), 0.75 * 4 * parameters / 1e9, 1e-9);
  EXPECT_NEAR(step(true, false)[ClosingTerm::kGather].value(), 0.75 * 2 * parameters / 1e9, 1e-9);
  EXPECT_EQ(step(false, false)[ClosingTerm::kGather], Seconds(0));
  EXPECT_EQ(step(true, false).hidden, Seconds(0));
  EXPECT_LE(step(true, true).total(), step(true, false).total());
}

}  // namespace
}  // namespace pipesim::stage_cost_test
