// Measured runs anchored on one of their own, and the bands that they give each other.
#include <cmath>
#include <gtest/gtest.h>

#include "tests/folder.h"
#include "validate/papers/runs/anchored.h"
#include "validate/papers/runs/bands.h"

namespace pipesim::anchored_runs_test {
namespace {

std::string row(const std::string& id, int gpus, int batch, double seconds) {
  return "- {id: " + id + ", model: Llama 3.1 70B, gpu: H100, gpus: " + std::to_string(gpus) +
         ", tp: 4, pp: 4, vpp: 5, cp: 1, mbs: 1, gbs: " + std::to_string(batch) +
         ", seq: 4096, precision: bf16, step_s: " + std::to_string(seconds) + "}\n";
}

TrainingRuns compare(const std::string& rows) {
  const auto folder = testing::test_folder();
  testing::write_file(folder / "runs.yaml", "dgxc:\n" + rows);
  return compare_measured_runs(folder.string(), {});
}

// Three runs that are slower than simulated by the same share.
TrainingRuns slower(double factor) {
  const TrainingRuns plain =
      compare(row("b", 32, 64, 1) + row("a", 64, 64, 1) + row("c", 32, 32, 1));
  std::string rows;
  for (const TrainingRun& run : plain.runs) {
    rows += row(run.id, run.gpus, run.id == "c" ? 32 : 64, factor * *run.simulated);
  }
  return compare(rows);
}

TEST(AnchoredRuns, TakeTheFewestGpusThenTheSmallestIdAndPredictTheRest) {
  TrainingRuns all = slower(1.2);
  for (const TrainingRun& run : all.runs) EXPECT_NEAR(*run.relative_error(), 1 / 1.2 - 1, 1e-5);
  anchor_runs(all);
  ASSERT_EQ(all.runs.size(), 3U);
  EXPECT_TRUE(all.runs[0].anchor);  // b: as few GPUs as c
  EXPECT_FALSE(all.runs[1].anchor);
  EXPECT_FALSE(all.runs[2].anchor);
  EXPECT_NEAR(*all.runs[0].relative_error(), 0, 1e-9);
  // Collectives stay, so that the others are met nearly.
  EXPECT_LT(std::abs(*all.runs[1].relative_error()), 0.02);
  EXPECT_LT(std::abs(*all.runs[2].relative_error()), 0.02);
  EXPECT_NE(runs_json(all).find("\"status\": \"anchor\""), std::string::npos);
  EXPECT_EQ(residuals_of(all).size(), 2U);
}

TEST(AnchoredRuns, ThatNoFactorMeetsSayWhy) {
  TrainingRuns all = compare(row("a", 32, 64, 1e-4) + row("b", 64, 64, 1));
  anchor_runs(all);
  EXPECT_FALSE(all.runs[1].simulated);
  EXPECT_NE(all.runs[1].reason.find("not anchored"), std::string::npos);
}

TEST(BandsOfRuns, StandAroundWhatRunsNearThemTook) {
  TrainingRuns all = slower(1.2);
  std::vector<Residual> catalogue;
  for (int i = 0; i < 30; ++i) {
    catalogue.push_back({"known" + std::to_string(i), "h100-sxm", "bf16", "dense", "NeMo", 2025,
                         std::log(1.19 + 0.001 * (i % 20))});
  }
  add_bands(all, catalogue);
  for (const TrainingRun& run : all.runs) {
    ASSERT_TRUE(run.low && run.high);
    EXPECT_LT(*run.low, run.published);
    EXPECT_GT(*run.high, run.published);
    EXPECT_GT(*run.low, 1.1 * *run.simulated);
  }
}

TEST(BandsOfRuns, OfOneGroupAloneHaveNoneWithoutIt) {
  TrainingRuns all = slower(1.2);
  add_bands(all, {});
  for (const TrainingRun& run : all.runs) EXPECT_FALSE(run.low);
  EXPECT_NE(coverage_text(all).find("no run near"), std::string::npos);
}

}  // namespace
}  // namespace pipesim::anchored_runs_test
