// Scenarios whose modules offload their inputs, and whose hosts hold optimizer states.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/case/simulate.h"
#include "tests/case/cases.h"

namespace pipesim::module_offload_test {
namespace {

constexpr const char* kBase = R"(
model: llama3-8b
cluster: {name: dgx-h100}
schedule: 1f1b
parallel: {tensor_model_parallel_size: 2, sequence_parallel: true, pipeline_model_parallel_size: 4,
           data_parallel_size: 4}
batch: {num_microbatches: 16, micro_batch_size: 1, seq_length: 8192}
memory: {use_distributed_optimizer: true}
)";

Result result_of(const Changes& changes) {
  return simulate(prepare_first(read_changed(kBase, changes)));
}

const std::pair<std::string, std::string> kModules{"memory.offload_modules",
                                                   "[attn_norm, mlp_norm]"};

TEST(ModuleOffload, KeepsLessOfEveryMicrobatchInFlight) {
  const Case whole = prepare_first(read_changed(kBase, {}));
  const Case away = prepare_first(read_changed(kBase, {kModules}));
  const Bytes offloaded = away.memory->stages.front().offloaded;
  EXPECT_GT(offloaded, Bytes(0));
  EXPECT_EQ(away.problem.stages.front().activation + offloaded,
            whole.problem.stages.front().activation);
  // Four microbatches are in flight on the first device; two of its eight layers come back.
  const Bytes before = *simulate(whole).report.peak_memory;
  const Bytes after = *simulate(away).report.peak_memory;
  EXPECT_NEAR((before - after) / (4 * offloaded - 2.0 / 8 * offloaded), 1, 1e-9);
}

// The first two of each stage's eight layers keep their input alone; the other six offload.
TEST(ModuleOffload, HoldsInLayersThatAreNotRecomputed) {
  const Case all = prepare_first(read_changed(kBase, {kModules}));
  const Case some = prepare_first(read_changed(
      kBase, {kModules, {"recompute", "{granularity: full, method: block, num_layers: 2}"}}));
  EXPECT_DOUBLE_EQ(some.memory->stages.front().offloaded.value(),
                   0.75 * all.memory->stages.front().offloaded.value());
  const Case whole = prepare_first(
      read_changed(kBase, {{"recompute", "{granularity: full, method: block, num_layers: 2}"}}));
  EXPECT_LT(*simulate(some).report.peak_memory, *simulate(whole).report.peak_memory);
}

// Where every layer of a stage is recomputed, nothing leaves, and nothing comes back.
TEST(ModuleOffload, HasNoBuffersWhereNoLayerOffloads) {
  const std::pair<std::string, std::string> every{
      "recompute", "{granularity: full, method: block, num_layers: 8}"};
  const Result kept = result_of({every});
  EXPECT_EQ(*result_of({every, kModules}).report.peak_memory, *kept.report.peak_memory);
}

TEST(ModuleOffload, CostsTimeWhereTheLinkIsSlowAlone) {
  const Seconds before = result_of({}).report.iteration;
  EXPECT_EQ(result_of({kModules}).report.iteration, before);
  const Changes slow{{"cluster.host.alone", "2 GB/s"}, {"cluster.host.duplex", "2 GB/s"}};
  EXPECT_EQ(result_of(slow).report.iteration, before);
  Changes both = slow;
  both.push_back(kModules);
  const Case made = prepare_first(read_changed(kBase, both));
  const Seconds copy = made.memory->stages.front().offloaded / BytesPerSecond(1e9);
  const StageCost& stage = made.problem.stages.front();
  EXPECT_EQ(stage.forward, copy);
  EXPECT_NEAR((stage.backward_input + stage.backward_weight) / copy, 1, 1e-12);
  EXPECT_GT(simulate(made).report.iteration, 1.2 * before);
}

TEST(HostOptimizer, TakesLessMemoryAndMoreTime) {
  const Result before = result_of({});
  const Result after = result_of({{"memory.optimizer_offload_fraction", "1"}});
  EXPECT_LT(*after.report.peak_memory, *before.report.peak_memory);
  const Case made =
      prepare_first(read_changed(kBase, {{"memory.optimizer_offload_fraction", "1"}}));
  Seconds host;
  for (const StepCost& step : made.closing) host = std::max(host, step.host);
  EXPECT_GT(after.report.iteration, before.report.iteration + 0.9 * host);
  EXPECT_LT(after.report.iteration, before.report.iteration + host);
}

// Four devices of eight GPUs, a node each: 1F1B has 4, 3, 2, 1 microbatches in flight on them.
TEST(NodeMemory, HoldsWhatModulesOffloadOfTheMicrobatchesInFlight) {
  const Case made = prepare_first(read_changed(kBase, {kModules}));
  const Result result = simulate(made);
  ASSERT_TRUE(result.host);
  for (int device = 0; device < 4; ++device) {
    EXPECT_DOUBLE_EQ(result.host->devices[device].value(),
                     (4 - device) * made.memory->stages[device].offloaded.value());
  }
  EXPECT_DOUBLE_EQ(result.host->node->value(), 8 * result.host->devices.front().value());
  EXPECT_EQ(result.host->node_optimizer, Bytes(0));
  EXPECT_EQ(result.host->capacity, Bytes(2e12));
  EXPECT_TRUE(result.host->fits());
  EXPECT_FALSE(result_of({}).host);
}

// Two devices of four GPUs share a node.
TEST(NodeMemory, IsThatOfAllDevicesOnTheNode) {
  const Result result = result_of({kModules, {"parallel.tensor_model_parallel_size", "1"}});
  const auto& devices = result.host->devices;
  EXPECT_DOUBLE_EQ(result.host->node->value(), 4 * (devices[0] + devices[1]).value());
}

// DualPipe's devices have stages of both directions; all have eight layers, and offload alike.
TEST(NodeMemory, CountsBothPassesOfABlock) {
  const Case made = prepare_first(read_changed(kBase, {kModules, {"schedule", "dualpipe"}}));
  const Result result = simulate(made);
  for (int device = 0; device < 4; ++device) {
    int held = 0;
    int most = 0;
    for (const Pass& pass : result.program->passes(device)) {
      if (pass.kind == PassKind::kF || pass.kind == PassKind::kFB) most = std::max(most, ++held);
      if (pass.kind != PassKind::kF && pass.kind != PassKind::kW) --held;
    }
    EXPECT_EQ(held, 0);
    EXPECT_DOUBLE_EQ(result.host->devices[device].value(),
                     most * made.memory->stages.front().offloaded.value());
  }
}

// Adam's 12 bytes and a gradient of 4: each parameter once on all GPUs together, but for the norms,
// which tensor ranks hold alike.
TEST(NodeMemory, HoldsStatesAndGradientsOfWhatTheHostUpdates) {
  const std::pair<std::string, std::string> all{"memory.optimizer_offload_fraction", "1"};
  const Result whole = result_of({all});
  double sum = 0;
  for (const Bytes& device : whole.host->optimizer) sum += 8 * device.value();
  EXPECT_NEAR(sum / (16 * 8.030e9), 1, 1e-3);
  EXPECT_EQ(whole.host->devices, whole.host->optimizer);
  EXPECT_EQ(whole.host->node_optimizer, *whole.host->node);
  const Result half = result_of({{"memory.optimizer_offload_fraction", "0.5"}});
  EXPECT_DOUBLE_EQ(half.host->node->value(), whole.host->node->value() / 2);
  const Result bf16 = result_of({all, {"memory.exp_avg_dtype", "bf16"}});
  EXPECT_NEAR(*bf16.host->node / *whole.host->node, 14.0 / 16, 1e-12);
  const std::pair<std::string, std::string> small{
      "cluster.host.memory", fmt::format("{:.0f} B", 0.75 * whole.host->node->value())};
  EXPECT_FALSE(result_of({all, small}).host->fits());
  EXPECT_TRUE(result_of({{"memory.optimizer_offload_fraction", "0.5"}, small}).host->fits());
}

// States stand there all the time, activations beside them.
TEST(NodeMemory, AddsUp) {
  const std::pair<std::string, std::string> states{"memory.optimizer_offload_fraction", "1"};
  const auto node = [](const Result& of, size_t device) {
    return 8 * of.host->devices[device].value();
  };
  const Result both = result_of({states, kModules});
  const Result alone = result_of({states});
  const Result modules = result_of({kModules});
  for (size_t device = 0; device < 4; ++device) {
    EXPECT_DOUBLE_EQ(node(both, device), node(alone, device) + node(modules, device));
  }
  // The first device's node: it has most microbatches in flight.
  EXPECT_DOUBLE_EQ(both.host->node->value(), node(both, 0));
  EXPECT_DOUBLE_EQ(both.host->node_optimizer.value(), node(alone, 0));
  const Result copied = result_of({{"offload", "true"}});
  const Result beside = result_of({states, {"offload", "true"}});
  EXPECT_DOUBLE_EQ(beside.host->devices[0].value(),
                   copied.host->devices[0].value() + beside.host->optimizer[0].value());
}

}  // namespace
}  // namespace pipesim::module_offload_test
