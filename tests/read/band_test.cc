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

TEST(BandOfAScenario, IsThatOfItsSoftware) {
  const Scenario stated = read("dgx-a100", "cost: {software: megatron-deepspeed-2023}\n");
  ASSERT_TRUE(stated.band);
  EXPECT_EQ(stated.band->group, "a100-sxm-80gb bf16 dense, Megatron-DeepSpeed 2023");
  EXPECT_GE(stated.band->rows, 50U);
  // No run of this release on the GPU: another release of the same software stands for it.
  const Scenario core = read("dgx-h100", "cost: {software: megatron-core}\n");
  EXPECT_EQ(core.band->group, "h100-sxm bf16 dense, NeMo 2025");
  EXPECT_EQ(read("dgx-h100").band->group, core.band->group);
  // No run of it on the GPU: that of the framework on others.
  EXPECT_EQ(read("dgx-h200").band->group, "NeMo dense");
  EXPECT_EQ(read("dgx-h100", "cost: {software: pytorch-fsdp-2023}\n").band->group,
            "h100-sxm bf16 dense, Composer 2023, 32x4096");
}

TEST(BandOfAScenario, IsOfItsSoftwareWhereItIsAnchored) {
  Scenario scenario = read("dgx-a100", "cost: {software: megatron-deepspeed-2022}\n");
  scenario.roofline->anchor = Anchor{.file = "", .same_model = true};
  EXPECT_EQ(read_band(scenario)->group, "a100-sxm-80gb bf16 dense, Megatron-DeepSpeed 2022");
  scenario.framework = {"Megatron-DeepSpeed", 2023};
  EXPECT_EQ(read_band(scenario)->group, "a100-sxm-80gb bf16 dense, Megatron-DeepSpeed 2023");
  scenario = read("dgx-h100");
  scenario.roofline->anchor = Anchor{.file = "", .same_model = true};
  EXPECT_EQ(read_band(scenario)->group, "h100-sxm bf16 dense, NeMo 2025");
}

// One anchored run of Megatron-Core on an A100 once made a band of MFU from 46% to 93%.
TEST(BandOfAScenario, IsNotThatOfOneRun) {
  Scenario scenario = read("dgx-a100");
  scenario.roofline->anchor = Anchor{.file = "", .same_model = true};
  const auto band = read_band(scenario);
  ASSERT_TRUE(band);
  EXPECT_LT(band->high / band->low, 1.9);
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
