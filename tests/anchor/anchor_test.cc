// Anchoring: what measured steps determine, what they leave open, the file and what it changes.
#include "sim/read/anchor.h"

#include <gtest/gtest.h>

#include "sim/anchor/fit.h"
#include "sim/anchor/least_squares.h"
#include "sim/anchor/measured_runs.h"
#include "sim/anchor/report.h"
#include "sim/interop/megatron/log.h"
#include "sim/read/scenario.h"
#include "tests/folder.h"

namespace pipesim::anchor_test {
namespace {

constexpr const char* kRun = R"(
model: llama3-8b
cluster: dgx-h100
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 4, tensor_model_parallel_size: 2, sequence_parallel: true,
           data_parallel_size: 4}
batch: {num_microbatches: 16, micro_batch_size: 1, seq_length: 4096}
memory: {kind: model, use_distributed_optimizer: true}
)";

Scenario scenario_of(std::vector<Override> changes = {}) {
  return read_scenario(YamlSource("test", kRun, std::move(changes)));
}

// A run that takes as long as one with these factors would.
MeasuredStep measured_with(const CostFactors& truth, int microbatches, int ranks) {
  MeasuredStep run{scenario_of({{"batch.num_microbatches", std::to_string(microbatches), {}},
                                {"parallel.data_parallel_size", std::to_string(ranks), {}}}),
                   {},
                   "run"};
  run.measured = step_with(run.scenario, truth);
  return run;
}

std::string refusal_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Anchor, OfOneRunMeetsItsStepAndSaysWhatItLeavesOpen) {
  const std::vector<MeasuredStep> runs{measured_with({1.3, 1, Seconds(0)}, 16, 4)};
  const AnchorFit fit = fit_anchor(runs);
  EXPECT_NEAR(fit.factors.compute, 1.3, 1e-9);
  EXPECT_EQ(fit.factors.fixed, Seconds(0));
  EXPECT_EQ(fit.unidentified.size(), 2U);
  EXPECT_NEAR(fit.runs[0].anchored / runs[0].measured, 1, 1e-9);
}

TEST(Anchor, TellsTheFixedPartFromComputeWhereMicrobatchesDiffer) {
  const CostFactors truth{1.2, 1, Seconds(0.08)};
  const std::vector<MeasuredStep> runs{measured_with(truth, 8, 4), measured_with(truth, 64, 4)};
  const AnchorFit fit = fit_anchor(runs);
  EXPECT_NEAR(fit.factors.compute, 1.2, 1e-6);
  EXPECT_NEAR(fit.factors.fixed.value(), 0.08, 1e-6);
  ASSERT_EQ(fit.unidentified.size(), 1U);
  EXPECT_EQ(fit.unidentified[0], "reduction: all runs have 4 data-parallel ranks");
}

TEST(Anchor, FindsTheReductionWhereDataRanksDifferAndItMatters) {
  const CostFactors truth{1.1, 3, Seconds(0)};
  const std::vector<MeasuredStep> runs{measured_with(truth, 4, 1), measured_with(truth, 4, 16),
                                       measured_with(truth, 4, 64)};
  const AnchorFit fit = fit_anchor(runs);
  EXPECT_NEAR(fit.factors.reduction, 3, 1e-4);
  EXPECT_NEAR(fit.factors.compute, 1.1, 1e-5);
}

TEST(Anchor, AddsNoNegativeFixedPart) {
  const CostFactors truth{1.2, 1, Seconds(0)};
  std::vector<MeasuredStep> runs{measured_with(truth, 8, 4), measured_with(truth, 64, 4)};
  runs[0].measured = 0.93 * runs[0].measured;
  const AnchorFit fit = fit_anchor(runs);
  EXPECT_EQ(fit.factors.fixed, Seconds(0));
  ASSERT_EQ(fit.unidentified.size(), 2U);
  EXPECT_NE(fit.unidentified[1].find("less of a fixed part"), std::string::npos);
}

TEST(Anchor, RefusesAStepThatNoComputeExplains) {
  std::vector<MeasuredStep> runs{measured_with({}, 16, 4)};
  runs[0].measured = 1e-3 * runs[0].measured;
  EXPECT_THROW((void)fit_anchor(runs), InfeasibleError);
}

TEST(Anchor, FileReadsBackAsTheSameStep) {
  const std::vector<MeasuredStep> runs{measured_with({1.2, 1, Seconds(0.08)}, 8, 4),
                                       measured_with({1.2, 1, Seconds(0.08)}, 64, 4)};
  const AnchorFit fit = fit_anchor(runs);
  const auto file = testing::test_folder() / "anchor.yaml";
  testing::write_file(file, anchor_yaml(runs, fit));
  const Scenario anchored = scenario_of({{"cost.anchor", file.string(), {}}});
  ASSERT_TRUE(anchored.roofline->anchor);
  EXPECT_TRUE(anchored.roofline->anchor->same_model);
  const CostFactors read = anchored.roofline->anchor->factors;
  EXPECT_EQ(step_with(scenario_of(), read), step_with(scenario_of(), fit.factors));
  EXPECT_GT(step_with(scenario_of(), read), step_with(scenario_of(), {}));
  const Scenario other =
      scenario_of({{"model", "llama3-70b", {}}, {"cost.anchor", file.string(), {}}});
  EXPECT_FALSE(other.roofline->anchor->same_model);
}

TEST(Anchor, FileOfAnotherGpuOrWithASlipIsRefusedWhereItStands) {
  const auto refusal = [](const std::string& text) {
    return refusal_of([&] { (void)read_anchor(YamlSource("a.yaml", text), scenario_of()); });
  };
  const std::string run =
      "from: [{scenario: a, model: b, gpu: h100-sxm, precision: bf16, measured_seconds: 1, "
      "simulated_seconds: 1, anchored_seconds: 1}]\n";
  EXPECT_EQ(refusal("factors: {compute: 1.1}\n" + run), "");
  EXPECT_NE(refusal("factors: {compute: 0}\n" + run).find("a.yaml:1:"), std::string::npos);
  EXPECT_NE(refusal("factors: {computes: 1}\n" + run).find("compute"), std::string::npos);
  EXPECT_NE(refusal("factors: {compute: 1}\n").find("from"), std::string::npos);
  std::string other = run;
  other.replace(other.find("h100-sxm"), 8, "b200-sxm");
  EXPECT_NE(refusal("factors: {compute: 1}\n" + other).find("measured on 'b200-sxm'"),
            std::string::npos);
}

TEST(MeasuredRuns, RefuseSeveralSchedulesGivenCostsAndAnAnchor) {
  const auto file = testing::test_folder() / "run.yaml";
  const auto refusal = [&](std::vector<Override> changes, const std::string& measured) {
    testing::write_file(file, kRun);
    return refusal_of([&] {
      (void)read_measured_run(file.string(), {}, std::move(changes), {measured, {}, {}});
    });
  };
  EXPECT_EQ(refusal({}, "2.5 s"), "");
  EXPECT_NE(refusal({{"schedule", "[1f1b, zb-h1]", {}}}, "2.5 s").find("one schedule"),
            std::string::npos);
  EXPECT_NE(refusal({}, "2.5").find("unit"), std::string::npos);
  EXPECT_NE(refusal({}, "0 s").find("more than 0"), std::string::npos);
}

TEST(MeasuredRuns, OfAFileTakeChangesAndLogs) {
  const auto folder = testing::test_folder();
  testing::write_file(folder / "run.yaml", kRun);
  testing::write_file(folder / "run.log",
                      "| elapsed time per iteration (ms): 900.0 |\n"
                      "| elapsed time per iteration (ms): 500.0 |\n");
  testing::write_file(
      folder / "runs.yaml",
      "runs:\n- {scenario: run.yaml, set: {batch.num_microbatches: 64}, measured: 2 s}\n"
      "- {scenario: run.yaml, log: run.log}\n");
  const auto runs = read_measured_runs((folder / "runs.yaml").string(), {}, {});
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].scenario.batch.microbatches, 64);
  EXPECT_EQ(runs[0].measured, Seconds(2));
  EXPECT_EQ(runs[1].scenario.batch.microbatches, 16);
  EXPECT_EQ(runs[1].measured, Seconds(0.5));
}

TEST(MegatronLog, IsTheMedianAfterTheFirstLines) {
  std::string log;
  for (const int ms : {9000, 5000, 4000, 1010, 1000, 1030, 1020}) {
    log += " iteration 5/ 10 | elapsed time per iteration (ms): " + std::to_string(ms) +
           ".5 | learning rate: 1e-4 |\n";
  }
  const LoggedSteps steps = steps_of_log(log);
  EXPECT_EQ(steps.dropped, 3U);
  EXPECT_EQ(steps.lines, 4U);
  EXPECT_NEAR(steps.median.value(), 1.0155, 1e-12);
  EXPECT_EQ(steps_of_log("loss 3").lines, 0U);
}

TEST(LeastSquares, SolvesAndSaysWhatRowsDoNotDetermine) {
  const LeastSquares line({{1, 1, 1}, {1, 2, 3}});
  const auto x = line.solve(std::vector<double>{3, 5, 7});
  EXPECT_NEAR(x[0], 1, 1e-12);
  EXPECT_NEAR(x[1], 2, 1e-12);
  EXPECT_NEAR(line.standard_errors(0.1)[1], 0.1 / std::sqrt(2.0), 1e-12);
  const LeastSquares twice({{1, 2}, {2, 4}});
  EXPECT_TRUE(std::isinf(twice.standard_errors(1)[1]));
  EXPECT_EQ(twice.solve(std::vector<double>{1, 2})[1], 0);
}

}  // namespace
}  // namespace pipesim::anchor_test
