#include <gtest/gtest.h>

#include "sim/anchor/fitted_factor.h"
#include "sim/core/error.h"
#include "sim/read/model.h"
#include "tests/folder.h"
#include "validate/papers/paper_data.h"
#include "validate/papers/timed_run.h"
#include "validate/papers/zero_bubble/zero_bubble.h"

namespace pipesim::one_cell_test {
namespace {

TEST(OneCell, FindsTheFactorThatACellWasMadeWith) {
  const auto cell = [](double factor) { return Seconds(0.3 + 1.7 * factor); };
  EXPECT_NEAR(fitted_factor(cell(1.234), cell), 1.234, 1e-9);
  EXPECT_THROW((void)fitted_factor(Seconds(0.2), cell), InfeasibleError);
}

TimedRun small_run() {
  TimedRun run;
  run.model = find_model("zb-1.5b", {});
  run.hardware = cluster_of_catalog("a100-roce", {});
  run.setting.context.seq_length = 1024;
  run.devices = 2;
  run.microbatches = 4;
  return run;
}

TEST(TimedRun, ScalesWhatIsComputedAndNotMessages) {
  TimedRun run = small_run();
  run.devices = 1;
  const Seconds once = iteration_seconds(run);
  run.compute_factor = 2;
  EXPECT_NEAR(iteration_seconds(run) / once, 2, 1e-3);  // the norm of one rank stays
  run.devices = 2;
  EXPECT_EQ(mean_stage(run).transfer, mean_stage(small_run()).transfer);
  EXPECT_NEAR(mean_stage(run).forward / mean_stage(small_run()).forward, 2, 1e-12);
}

TEST(TimedRun, AddsWhatMessagesTakeBeyondTheirWay) {
  TimedRun run = small_run();
  const Seconds before = iteration_seconds(run);
  run.profiled.message = Seconds(1);
  // The first forward's message and the last backward's are in every order's way.
  EXPECT_GE(iteration_seconds(run) - before, Seconds(2 - 1e-9));
}

class ZeroBubbleRows : public ::testing::Test {
 protected:
  std::vector<Cell> compare(const std::string& yaml) {
    const auto folder = testing::test_folder();
    testing::write_file(folder / "zero_bubble.yaml", yaml);
    return zero_bubble::compare(folder.string(), {});
  }
};

// A row that a factor was fitted to counts as fitted; the others are predicted, by one number.
TEST_F(ZeroBubbleRows, FitsTheCellWithMostMicrobatchesAndPredictsTheRest) {
  const auto cells = compare(R"(
table4_measured:
- {model: 6.2B, gpus: 8, b: 3, m: 24, schedule: 1F1B, samples_per_gpu_s: 3}
- {model: 6.2B, gpus: 8, b: 3, m: 32, schedule: 1F1B, samples_per_gpu_s: 3.5}
- {model: 6.2B, gpus: 8, b: 3, m: 24, schedule: ZB-2p, samples_per_gpu_s: 4}
)");
  ASSERT_EQ(cells.size(), 3U);
  EXPECT_EQ(cells[1].table, "Table 4 throughput, fitted");
  EXPECT_NEAR(*cells[1].simulated, 3.5, 1e-6);
  EXPECT_FALSE(cells[1].must_agree);
  EXPECT_TRUE(cells[0].must_agree);
  // Fewer microbatches and the same factor: slower; without a bubble faster than both.
  EXPECT_LT(*cells[0].simulated, 3.5);
  EXPECT_GT(*cells[2].simulated, 3.5);
}

TEST_F(ZeroBubbleRows, ReadTheNumberOfMicrobatchesThatTable11Misprints) {
  const auto cells = compare(R"(
table3_models:
- {model: 14.6B, b: 1, m: [48, 64, 128]}
table11_same_memory:
- {model: 14.6B, p: 16, m: 32, b: 2, schedule: 1F1B, samples_per_gpu_s: 1.62}
- {model: 14.6B, p: 16, m: 48, b: 2, schedule: 1F1B, samples_per_gpu_s: 1.53}
)");
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[0].cell, "14.6B p=16 m=64 b=2 1F1B, samples/s/GPU");
  EXPECT_EQ(cells[0].table, "Table 11 throughput, fitted");
}

}  // namespace
}  // namespace pipesim::one_cell_test
