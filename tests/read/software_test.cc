// Generations of frameworks, and how a scenario runs mixtures of experts.
#include "sim/read/software.h"

#include <gtest/gtest.h>

#include "sim/case/simulate.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::software_test {
namespace {

std::string scenario(const std::string& cost) {
  return "model: {base: qwen3-235b-a22b, num_layers: 8}\n"
         "cluster: dgx-h100\n"
         "schedule: 1f1b\n"
         "parallel: {pipeline_model_parallel_size: 2, data_parallel_size: 16, "
         "expert_model_parallel_size: 16, expert_tensor_parallel_size: 1}\n"
         "batch: {num_microbatches: 4, micro_batch_size: 1, seq_length: 4096}\n"
         "cost: {kind: roofline" +
         (cost.empty() ? "" : ", " + cost) + "}\n";
}

double seconds(const std::string& cost = "") {
  return simulate(prepare_first(read_scenario(YamlSource("s.yaml", scenario(cost)))))
      .report.iteration.value();
}

std::string refusal(const std::string& cost) {
  try {
    (void)read_scenario(YamlSource("s.yaml", scenario(cost)));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SoftwareCatalogue, HasTheNewestFirstWhichIsTheDefault) {
  EXPECT_EQ(catalogue_software().front().software.name, "megatron-core");
  EXPECT_EQ(seconds(), seconds("software: megatron-core"));
  EXPECT_GT(seconds("software: megatron-deepspeed-2022"), seconds());
}

// FlashAttention 1, of the peak on an A100: 50 of 73% forward, 35 of 63% backward.
TEST(SoftwareCatalogue, HasAttentionOfTheFirstGenerationAtItsShareOfTheSecond) {
  for (const SoftwareEntry& entry : catalogue_software()) {
    const auto& [forward, backward] = entry.software.attention;
    const bool first = entry.software.name == "megatron-core-2023";
    EXPECT_NEAR(forward, first ? 50.0 / 73 : 1, 1e-3) << entry.software.name;
    EXPECT_NEAR(backward, first ? 35.0 / 63 : 1, 1e-3) << entry.software.name;
  }
  EXPECT_GT(seconds("software: megatron-core-2023"), seconds("software: megatron-deepspeed-2023"));
}

TEST(SoftwareCatalogue, SaysOfEveryNumberWhereItComesFrom) {
  for (const SoftwareEntry& entry : catalogue_software()) {
    EXPECT_GE(entry.numbers.size(), 8U) << entry.software.name;
    for (const Sourced& number : entry.numbers) {
      const bool known = number.source.starts_with("fitted to") ||
                         number.source.starts_with("published: ") ||
                         number.source.starts_with("assumed: ");
      EXPECT_TRUE(known) << entry.software.name << ", " << number.key << ": " << number.source;
    }
  }
}

TEST(SoftwareCatalogue, NamesTheNearestGeneration) {
  EXPECT_NE(refusal("software: megatron-cor").find("megatron-core"), std::string::npos);
}

TEST(ExpertsInAScenario, TakeLessWhereTheExchangeIsSentOnceANode) {
  EXPECT_LT(seconds("moe_token_dispatcher_type: flex"), seconds());
  EXPECT_LT(seconds("moe_router_force_load_balancing: true"), seconds());
  EXPECT_LT(seconds("moe_token_dispatcher_type: flex, moe_flex_dispatcher_backend: hybridep"),
            seconds("moe_token_dispatcher_type: flex"));
  EXPECT_NE(
      refusal("moe_flex_dispatcher_backend: hybridep").find("is of moe_token_dispatcher_type"),
      std::string::npos);
}

}  // namespace
}  // namespace pipesim::software_test
