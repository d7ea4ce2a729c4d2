// Scenarios whose seconds follow from a model and the GPUs of a cluster.

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/slowest.h"
#include "sim/case/ranks.h"
#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/case/cases.h"

namespace pipesim::roofline_test {
namespace {

constexpr const char* kBase = R"(
model: llama3-8b
cluster: dgx-h100
schedule: 1f1b
parallel: {tensor_model_parallel_size: 2, sequence_parallel: true, pipeline_model_parallel_size: 4,
           data_parallel_size: 2}
batch: {global_batch_size: 32, micro_batch_size: 1, seq_length: 4096}
)";

Scenario read(const Changes& changes = {}, const std::string& base = kBase) {
  return read_changed(base, changes);
}

std::string refusal(const Changes& changes, const std::string& base = kBase) {
  return refusal_of(base, changes);
}

Result run(const Scenario& scenario) { return simulate(prepare_first(scenario)); }

TEST(Roofline, IsWhatAModelOnANamedClusterCosts) {
  const Scenario scenario = read();
  ASSERT_TRUE(scenario.roofline);
  EXPECT_EQ(scenario.sync, OptimizerSync::kAllReduce);
  const Problem problem = prepare_first(scenario).problem;
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

// Kernels take as long as on the slowest of 16 GPUs; messages and collectives as before.
TEST(Roofline, WaitsForTheSlowestOfItsGpus) {
  const auto seconds = [](const char* variation) {
    return run(read({{"cluster",
                      fmt::format("{{name: dgx-h100, fleet: {{variation: {}}}}}", variation)}}))
        .report.iteration;
  };
  const double slower = seconds("0.02") / seconds("0");
  EXPECT_GT(slower, 1 + 0.7 * 0.02 * expected_maximum(16));
  EXPECT_LT(slower, 1 + 0.02 * expected_maximum(16));
}

// Forward, QK^T and PV of a layer take 2 s^2 h each; a pass and its backward three times that.
TEST(Roofline, CountsAttentionInFullOrCausal) {
  const Scenario scenario = read();
  const Transformer& model = scenario.modelled->model;
  const Throughput rate = *run(scenario).throughput;
  const double length = *scenario.batch.seq_length;
  const double half = 3.0 * model.num_layers * 2 * length * length * model.hidden_size;
  EXPECT_NEAR(*rate.model_tflops_per_gpu - *rate.model_tflops_per_gpu_causal,
              rate.samples_per_second_per_gpu * half / 1e12, 1e-9);
  EXPECT_NEAR(*rate.mfu_causal / *rate.mfu,
              *rate.model_tflops_per_gpu_causal / *rate.model_tflops_per_gpu, 1e-12);
}

TEST(Roofline, HasToFitTheClustersGpuWhereNoCapacityIsGiven) {
  EXPECT_EQ(run(read()).fits, MemoryFit::kYes);
  const Result large = run(read({{"model", "llama3-70b"}, {"batch.seq_length", "8192"}}));
  EXPECT_GT(large.report.peak_memory->value(), 80 * 1024.0 * 1024.0 * 1024.0);
  EXPECT_EQ(large.fits, MemoryFit::kNo);
  EXPECT_EQ(run(read({{"model", "llama3-70b"},
                      {"batch.seq_length", "8192"},
                      {"memory", "{kind: model, capacity: 1 TiB}"}}))
                .fits,
            MemoryFit::kYes);
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
  const auto first = [](const Scenario& scenario) {
    return prepare_first(scenario).closing.front();
  };
  EXPECT_EQ(first(goes_on)[ClosingTerm::kNorm], Seconds(0));
  EXPECT_GT(first(waits)[ClosingTerm::kNorm], Seconds(0));
  EXPECT_EQ(first(goes_on)[ClosingTerm::kOptimizer], first(waits)[ClosingTerm::kOptimizer]);
}

TEST(Roofline, NeedsNoKindBesideAModelAndANamedCluster) {
  const Scenario scenario =
      read({{"cost.overlap_grad_reduce", "true"}, {"memory.dropout", "true"}});
  EXPECT_TRUE(scenario.roofline->overlap.gradient_reduce);
  EXPECT_TRUE(scenario.modelled->context.dropout);
  EXPECT_NE(refusal({{"cost.forward", "1 ms"}}).find("cost.forward: unknown key"),
            std::string::npos);
}

TEST(Roofline, NamesWhatItNeeds) {
  const std::string given =
      "{kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}";
  EXPECT_FALSE(read({{"cost", given}}).roofline);
  EXPECT_NE(refusal({{"cost.kind", "rooflin"}}).find("did you mean 'roofline'?"),
            std::string::npos);
  EXPECT_NE(refusal({{"cost.kind", "roofline"}, {"cost.overlap", "true"}}).find("unknown key"),
            std::string::npos);
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

TEST(Roofline, ClosesEveryDeviceByItsOwnParameters) {
  const Scenario scenario = read();
  const auto closing = prepare_first(scenario).closing;
  ASSERT_EQ(closing.size(), 4U);
  EXPECT_GT(closing.front()[ClosingTerm::kOptimizer], closing[1][ClosingTerm::kOptimizer])
      << "the embedding";
  EXPECT_GT(closing.back()[ClosingTerm::kReduce], closing[1][ClosingTerm::kReduce]) << "the output";
  EXPECT_EQ(closing[1].total(), closing[2].total());
  const Result simulation = run(scenario);
  const auto& devices = simulation.report.devices;
  EXPECT_GT(devices.front().busy - devices[1].busy, Seconds(0));
  EXPECT_GT(devices[1].idle_by_cause[IdleCause::kCollective], Seconds(0));
}

TEST(Roofline, CountsAttentionAgainInBUnderSelectiveRecompute) {
  const auto stage = [](const Scenario& scenario) {
    return prepare_first(scenario).problem.stage(1);
  };
  const StageCost none = stage(read());
  const StageCost selective = stage(read({{"recompute", "selective"}}));
  EXPECT_EQ(selective.forward, none.forward);
  EXPECT_GT(selective.backward_input, none.backward_input);
  EXPECT_LT(selective.backward_input - none.backward_input, 0.5 * none.forward);
  EXPECT_EQ(selective.backward_weight, none.backward_weight);
  EXPECT_LE(selective.activation, none.activation);
}

TEST(Roofline, LimitsAllMemoryOfADevice) {
  const Scenario scenario = read({{"schedule", "{name: zb, memory_limit: {total: 60 GiB}}"}});
  const Case made = prepare_first(scenario);
  Bytes beside;
  for (const DeviceMemory& device : made.memory->devices) {
    beside = std::max(beside, device.total());
  }
  EXPECT_EQ(*made.problem.activation_limit, 60.0 * kGiB - beside);
  EXPECT_LE(*run(scenario).report.peak_memory, 60.0 * kGiB);
  const Scenario tight = read({{"schedule", "{name: zb, memory_limit: {total: 1 GiB}}"}});
  EXPECT_THROW((void)prepare_first(tight).problem, InfeasibleError);
  EXPECT_NE(refusal({{"schedule", "{name: zb, memory_limit: {totl: 1 GiB}}"}}).find("'total'"),
            std::string::npos);
  const std::string given =
      "schedule: {name: zb, memory_limit: {total: 60 GiB}}\nparallel: "
      "{pipeline_model_parallel_size: 2}\nbatch: {num_microbatches: 4}\ncost: {kind: given, "
      "forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n";
  EXPECT_NE(refusal({}, given).find("needs a model"), std::string::npos);
}

TEST(Roofline, PutsDevicesOnNodesByTheirRanks) {
  const auto nodes = [](const std::string& sizes) {
    const Cluster cluster = cluster_of_positions(
        read({{"parallel", "{pipeline_model_parallel_size: 4, " + sizes + "}"},
              {"batch", "{num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}"}}));
    return std::pair(cluster.gpus_per_node, cluster.nics_per_node);
  };
  EXPECT_EQ(nodes("tensor_model_parallel_size: 1"), std::pair(8, 8));
  EXPECT_EQ(nodes("tensor_model_parallel_size: 2"), std::pair(4, 4));
  EXPECT_EQ(nodes("tensor_model_parallel_size: 8"), std::pair(1, 1));
  EXPECT_EQ(nodes("tensor_model_parallel_size: 2, data_parallel_size: 2"), std::pair(2, 2));
  EXPECT_EQ(nodes("tensor_model_parallel_size: 4, data_parallel_size: 4"), std::pair(1, 1));
}

TEST(Roofline, TakesTheSameUnderBothEnginesWhereNothingIsShared) {
  for (const char* ranks : {"1", "2", "8"}) {
    const std::vector<std::pair<std::string, std::string>> of{
        {"parallel.tensor_model_parallel_size", ranks}, {"perturb", "{jitter: 0}"}};
    auto shared = of;
    shared.emplace_back("engine", "simgrid");
    const Result replay = run(read(of));
    const Result simgrid = run(read(shared));
    EXPECT_FALSE(simgrid.timeline.shared_links);
    EXPECT_NEAR(simgrid.report.iteration / replay.report.iteration, 1, 1e-11) << ranks;
  }
}

TEST(Roofline, SharesTheWaysOnWhichMessagesMeetUnderSimGrid) {
  // Two devices a node; slow cards, on which one message is not gone when the next comes.
  const std::vector<std::pair<std::string, std::string>> of{
      {"schedule", "{name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 2}"},
      {"cluster", "{name: dgx-h100, network: {bandwidth: 1 GB/s}}"},
      {"perturb", "{jitter: 0}"}};
  auto shared = of;
  shared.emplace_back("engine", "simgrid");
  const Result simgrid = run(read(shared));
  EXPECT_TRUE(simgrid.timeline.shared_links);
  EXPECT_GT(simgrid.report.iteration, run(read(of)).report.iteration);
}

constexpr const char* kExperts = R"(
model: {base: qwen3-235b-a22b, num_layers: 16}
cluster: dgx-h100
schedule: interleaved-1f1b
parallel: {pipeline_model_parallel_size: 4, data_parallel_size: 16,
           virtual_pipeline_model_parallel_size: 2, expert_model_parallel_size: 16}
batch: {num_microbatches: 16, micro_batch_size: 1, seq_length: 4096}
)";

TEST(Roofline, RunsForwardsAndBackwardsTogetherWhereExpertsExchangeTokens) {
  const auto seconds = [](const std::string& options) {
    const std::string schedule = "{name: interleaved-1f1b" + options + "}";
    return run(read({{"schedule", schedule}}, kExperts)).report.iteration;
  };
  const std::string combined = ", overlap_moe_expert_parallel_comm: true";
  EXPECT_LT(seconds(combined), 0.95 * seconds(""));
  EXPECT_LT(seconds(combined + ", delay_wgrad_compute: true"), seconds(combined));
  EXPECT_NE(seconds(combined + ", ep_overlap_early_attn_memory_release: true"), seconds(combined));
}

// With the parts of their own layers: of a stage with the output, and one without.
TEST(Roofline, TimesTheBlockOfEveryTwoChunksOfADevice) {
  const std::string schedule = "{name: interleaved-1f1b, overlap_moe_expert_parallel_comm: true}";
  const Problem problem = prepare_first(read({{"schedule", schedule}}, kExperts)).problem;
  ASSERT_EQ(problem.blocks.size(), 16U);
  const auto block = [&](int forward, int backward) {
    return *block_seconds(problem, forward, backward);
  };
  for (int vs = 0; vs < 8; ++vs) EXPECT_EQ(block(vs, vs), *problem.stage(vs).overlapped);
  const auto both = [&](int forward, int backward) {
    const StageCost& b = problem.stage(backward);
    return problem.stage(forward).forward + b.backward_input + b.backward_weight;
  };
  EXPECT_LT(block(3, 7), both(3, 7));
  EXPECT_LT(block(7, 3), both(7, 3));
  EXPECT_NE(block(3, 7), block(7, 3));
  EXPECT_TRUE(prepare_first(read({}, kExperts)).problem.blocks.empty());
}

TEST(Roofline, RefusesToDelayWeightGradientsOutsideBlocks) {
  const auto fault = [](const std::string& option) -> std::string {
    try {
      (void)run(read({{"schedule", "{name: interleaved-1f1b, " + option + ": true}"}}, kExperts));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  for (const char* option : {"delay_wgrad_compute", "ep_overlap_early_attn_memory_release"}) {
    EXPECT_NE(fault(option).find("needs overlap_moe_expert_parallel_comm"), std::string::npos);
  }
}

}  // namespace
}  // namespace pipesim::roofline_test
