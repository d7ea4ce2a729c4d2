// Whose measured runs a scenario's band is learned from.
#include "sim/read/band.h"

#include <gtest/gtest.h>

#include "sim/read/scenario.h"
#include "tests/folder.h"

namespace pipesim::band_test {
namespace {

Scenario read(const std::string& cluster, const std::string& cost = "") {
  return read_scenario(
      YamlSource("s.yaml", "model: llama3-8b\ncluster: " + cluster +
                               "\nschedule: 1f1b\nparallel: {pipeline_model_parallel_size: 4}\n"
                               "batch: {num_microbatches: 8, micro_batch_size: 1, "
                               "seq_length: 4096}\n" +
                               cost));
}

TEST(BandOfAScenario, IsThatOfItsSoftwareWhereThatIsStated) {
  const Scenario unstated = read("dgx-a100");
  ASSERT_TRUE(unstated.band);
  EXPECT_EQ(unstated.band->group, "a100-sxm-80gb bf16 dense");
  const Scenario stated = read("dgx-a100", "cost: {software: megatron-deepspeed-2023}\n");
  ASSERT_TRUE(stated.band);
  EXPECT_EQ(stated.band->group, "a100-sxm-80gb bf16 dense, Megatron-DeepSpeed 2023");
  EXPECT_GE(stated.band->rows, 50U);
  EXPECT_LT(stated.band->rows, unstated.band->rows);
  // No run of this release on the GPU: another release of the same software stands for it.
  EXPECT_EQ(read("dgx-h100", "cost: {software: megatron-core}\n").band->group,
            "h100-sxm bf16 dense, NeMo 2025");
}

TEST(BandOfAScenario, IsOfItsSoftwareWhereItIsAnchored) {
  Scenario scenario = read("dgx-a100", "cost: {software: megatron-deepspeed-2022}\n");
  scenario.roofline->anchor = Anchor{.file = "", .same_model = true};
  EXPECT_EQ(read_band(scenario, true)->group, "a100-sxm-80gb bf16 dense, Megatron-DeepSpeed 2022");
  scenario.framework = {"Megatron-DeepSpeed", 2023};
  EXPECT_EQ(read_band(scenario, true)->group, "a100-sxm-80gb bf16 dense, Megatron-DeepSpeed 2023");
  scenario = read("dgx-h100");
  scenario.roofline->anchor = Anchor{.file = "", .same_model = true};
  EXPECT_EQ(read_band(scenario, false)->group, "h100-sxm bf16 dense, NeMo 2025");
}

// One anchored run of Megatron-Core on an A100 once made a band of MFU from 46% to 93%.
TEST(BandOfAScenario, IsNotThatOfOneRun) {
  Scenario scenario = read("dgx-a100");
  scenario.roofline->anchor = Anchor{.file = "", .same_model = true};
  const auto band = read_band(scenario, false);
  ASSERT_TRUE(band);
  EXPECT_GE(band->rows, 100U);
  EXPECT_EQ(band->group, "a100-sxm-80gb bf16 dense");
  EXPECT_LT(band->high / band->low, 1.7);
  // Stated, it is that of the run and its neighbours, not twice as wide as they are.
  const auto stated = read_band(scenario, true);
  EXPECT_EQ(stated->rows, 1U);
  EXPECT_LT(stated->high / stated->low, 1.9);
}

TEST(BandOfDifferences, IsOfModelledCostsAlone) {
  Scenario scenario = read("dgx-h100");
  const auto band = read_difference_band(scenario);
  ASSERT_TRUE(band);
  EXPECT_GE(band->groups, 6U);
  EXPECT_GT(band->least_told_apart(), 0.01);
  EXPECT_LT(band->least_told_apart(), 0.08);
  scenario.roofline.reset();
  EXPECT_FALSE(read_difference_band(scenario));
}

}  // namespace
}  // namespace pipesim::band_test
