// Scenarios whose seconds follow from a model and the GPUs of a cluster.
#include "sim/scenario/roofline.h"

#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "sim/scenario/problem.h"
#include "sim/scenario/read_scenario.h"
#include "sim/scenario/simulate.h"

namespace pipesim {
namespace {

constexpr const char* kBase = R"(
model: llama3-8b
cluster: dgx-h100
schedule: 1f1b
parallel: {tensor_model_parallel_size: 2, sequence_parallel: true, pipeline_model_parallel_size: 4,
           data_parallel_size: 2}
batch: {global_batch_size: 32, micro_batch_size: 1, seq_length: 4096}
)";

Scenario read(const std::vector<std::pair<std::string, std::string>>& overrides = {},
              const std::string& base = kBase) {
  std::vector<Override> all;
  for (const auto& [key, value] : overrides) all.push_back({key, value, {}});
  return read_scenario(YamlSource("test", base, all));
}

std::string refusal(const std::vector<std::pair<std::string, std::string>>& overrides,
                    const std::string& base = kBase) {
  try {
    (void)read(overrides, base);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Simulation run(const Scenario& scenario) { return simulate(scenario, scenario.schedules.front()); }

TEST(Roofline, IsWhatAModelOnANamedClusterCosts) {
  const Scenario scenario = read();
  ASSERT_TRUE(scenario.roofline);
  EXPECT_EQ(scenario.sync, OptimizerSync::kAllReduce);
  const Problem problem = make_problem(scenario, scenario.schedules.front());
  for (const StageCost& stage : problem.stages) {
    EXPECT_GT(stage.forward, Seconds(0));
    EXPECT_GT(stage.backward_input, Seconds(0));
    EXPECT_GT(stage.backward_weight, Seconds(0));
  }
  // The last of four equal stages has the output besides.
  EXPECT_GT(problem.stages.back().forward, problem.stages[1].forward);
  EXPECT_EQ(problem.stages[1].forward, problem.stages[2].forward);
  EXPECT_GT(problem.stages.front().transfer, Seconds(0));
  EXPECT_EQ(problem.stages.back().transfer, Seconds(0));
}

TEST(Roofline, UsesLessThanThePeakAndKnowsHowMuch) {
  const Throughput rate = *run(read()).throughput;
  EXPECT_GT(*rate.mfu, 0.1);
  EXPECT_LT(*rate.mfu, 1);
  EXPECT_EQ(rate.mfu, rate.hfu);
  EXPECT_NEAR(*rate.model_tflops_per_gpu, *rate.mfu * 989, 1) << "of an H100's 989 TFLOP/s";
  const Throughput again = *run(read({{"recompute", "full"}})).throughput;
  EXPECT_LT(*again.mfu, *rate.mfu);
  EXPECT_NEAR(*again.hfu, *again.mfu * 4 / 3, 1e-12);
  EXPECT_FALSE(run(read({{"recompute", "selective"}})).throughput->hfu);
}

TEST(Roofline, CostsNoMoreWhereTheFrameworkHides) {
  const auto iteration = [](const char* key) {
    return run(read({{"cost.kind", "roofline"}, {key, "true"}})).report.iteration;
  };
  const Seconds exposed = run(read()).report.iteration;
  EXPECT_LT(iteration("cost.tp_comm_overlap"), exposed);
  EXPECT_LT(iteration("cost.overlap_grad_reduce"), exposed);
}

TEST(Roofline, TakesLongerOnAnOlderGpu) {
  EXPECT_GT(run(read({{"cluster", "dgx-a100"}})).report.iteration,
            1.5 * run(read()).report.iteration);
}

TEST(Roofline, ClosesAnIterationWithoutTheNormUnderPostValidation) {
  const Scenario waits = read();
  const Scenario goes_on = read({{"optimizer.sync", "post_validation"}});
  EXPECT_LT(closing_seconds(goes_on, goes_on.schedules.front()),
            closing_seconds(waits, waits.schedules.front()));
}

TEST(Roofline, NamesWhatItNeeds) {
  const std::string given =
      "{kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}";
  EXPECT_FALSE(read({{"cost", given}}).roofline);
  EXPECT_NE(refusal({{"cost.kind", "rooflin"}}).find("did you mean 'roofline'?"),
            std::string::npos);
  EXPECT_NE(refusal({{"cost.kind", "roofline"}, {"cost.overlap", "true"}}).find("unknown key"),
            std::string::npos);
  EXPECT_NE(refusal({{"engine", "simgrid"}}).find("tensor ranks"), std::string::npos);
  const std::string plain =
      "schedule: 1f1b\nparallel: {pipeline_model_parallel_size: 2}\nbatch: {num_microbatches: 4}\n";
  EXPECT_NE(refusal({{"cost.kind", "roofline"}}, plain).find("needs a 'model'"), std::string::npos);
  const std::string unnamed = plain + "model: llama3-8b\n";
  EXPECT_NE(refusal({{"cost.kind", "roofline"},
                     {"batch.micro_batch_size", "1"},
                     {"batch.seq_length", "4096"}},
                    unnamed)
                .find("needs a 'cluster' by name"),
            std::string::npos);
}

}  // namespace
}  // namespace pipesim
