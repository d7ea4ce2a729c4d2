// Scenarios whose modules offload their inputs, and whose hosts hold optimizer states.
#include <gtest/gtest.h>

#include "sim/case/simulate.h"
#include "tests/case/cases.h"

namespace pipesim {
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

}  // namespace
}  // namespace pipesim
