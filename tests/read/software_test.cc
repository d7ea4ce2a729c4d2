// Generations of frameworks, and how a scenario runs mixtures of experts.
#include "sim/read/software.h"

#include <gtest/gtest.h>

#include "sim/case/simulate.h"
#include "sim/core/data_folder.h"
#include "sim/prepare/prepare.h"
#include "sim/read/hardware.h"
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
TEST(AttentionKernels, HaveTheFirstGenerationAtItsShareOfTheSecond) {
  const HardwareCatalog catalog = read_hardware_folder(data_folder("catalog"), {});
  const Gpu& gpu = catalog.gpus.front().gpu;
  ASSERT_EQ(gpu.name, "a100-sxm-80gb");
  const auto& [forward, backward] = gpu.attention_kernels[AttentionKernel::kFlash1];
  EXPECT_NEAR(forward, 50.0 / 73, 1e-3);
  EXPECT_NEAR(backward, 35.0 / 63, 1e-3);
  EXPECT_EQ(gpu.attention_kernels[AttentionKernel::kFlash2][0], 1);
}

TEST(AttentionKernels, AreSlowerTheOlderTheyAre) {
  const auto with = [](const std::string& kernel) { return seconds("attention: " + kernel); };
  EXPECT_LT(with("flash-3"), with("flash-2"));
  EXPECT_EQ(with("sdpa"), with("flash-2"));
  EXPECT_LT(with("flash-2"), with("flash-1"));
  EXPECT_LT(with("flash-1"), with("unfused"));
  EXPECT_EQ(with("cudnn"), seconds());
  EXPECT_NE(refusal("attention: flash-4").find("flash-"), std::string::npos);
  std::string blackwell = scenario("attention: flash-3");
  blackwell.replace(blackwell.find("dgx-h100"), 8, "hgx-b200");
  EXPECT_THROW((void)read_scenario(YamlSource("s.yaml", blackwell)), InputError);
}

TEST(Launches, AreThoseOfTheGenerationUnlessAskedFor) {
  const std::string slow = "software: {name: megatron-core, host: {eager: 100 ms}}";
  EXPECT_GT(seconds(slow), 5 * seconds());
  EXPECT_EQ(seconds(slow + ", launch: cuda_graphs"), seconds());
  EXPECT_NE(refusal("launch: graph").find("cuda_graphs"), std::string::npos);
}

// Experts that share a GPU are quantized one after the other by the host, unless a graph is
// recorded.
TEST(Experts, AreQuantizedOneByOne) {
  const auto in = [](const std::string& precision, const std::string& launch) {
    std::string text = scenario(
        "software: {name: megatron-core, experts: {quantizing: 10 ms}}, launch: " + launch);
    text += "memory: {kind: model, precision: " + precision + "}\n";
    return simulate(prepare_first(read_scenario(YamlSource("s.yaml", text))))
        .report.iteration.value();
  };
  // Four layers on a device, four microbatches, eight experts, two matmuls in F, B and W each.
  EXPECT_GT(in("fp8", "eager"), 4 * 4 * 8 * 6 * 10e-3);
  EXPECT_LT(in("fp8", "cuda_graphs"), in("fp8", "eager") / 2);
  EXPECT_EQ(in("bf16", "cuda_graphs"), in("bf16", "eager"));
}

TEST(Experts, WaitWithDeepEpForAShareOfAnExchangesWait) {
  const auto with = [](const std::string& share) {
    return seconds(
        "moe_token_dispatcher_type: flex, software: {name: megatron-core, experts: {deepep: " +
        share + "}}");
  };
  EXPECT_EQ(with("0"),
            seconds("moe_token_dispatcher_type: flex, moe_flex_dispatcher_backend: hybridep"));
  EXPECT_LT(with("0.25"), seconds("moe_token_dispatcher_type: flex"));
  EXPECT_GT(with("1"), seconds("moe_token_dispatcher_type: flex"));
}

// A node of NVL72 has more GPUs than DeepEP joins: HybridEP stands for it.
TEST(Experts, SendWithHybridEpWhereDeepEpDoesNotRun) {
  const auto on_a_rack = [](const std::string& cost) {
    std::string text = scenario(cost);
    text.replace(text.find("dgx-h100"), 8, "gb200-nvl72");
    return read_scenario(YamlSource("s.yaml", text)).roofline->software.routing;
  };
  EXPECT_EQ(on_a_rack("moe_token_dispatcher_type: flex"), Seconds(0));
  EXPECT_GT(on_a_rack("moe_token_dispatcher_type: alltoall"), Seconds(0));
  try {
    (void)on_a_rack("moe_token_dispatcher_type: flex, moe_flex_dispatcher_backend: deepep");
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_EQ(error.message(),
              "cost.moe_flex_dispatcher_backend: DeepEP joins at most 8 GPUs by NVLink, and a node "
              "of gb200-nvl72 has 64: expected hybridep");
  }
}

TEST(Experts, TakeLongerWithBiases) {
  const auto of = [](const std::string& biases) {
    std::string text =
        scenario("software: {name: megatron-core, experts: {biases: " + biases + "}}");
    const std::string model = "{base: qwen3-235b-a22b, num_layers: 8}";
    text.replace(text.find(model), model.size(), "{base: gpt-oss-120b, num_layers: 8}");
    return simulate(prepare_first(read_scenario(YamlSource("s.yaml", text))))
        .report.iteration.value();
  };
  EXPECT_GT(of("2"), 1.05 * of("0"));
  EXPECT_EQ(seconds("software: {name: megatron-core, experts: {biases: 9}}"), seconds());
}

// Buckets have latencies of their own; parts that ranks broadcast follow each other.
TEST(Steps, TakeLongerInBucketsAndBroadcasts) {
  const auto with = [](const std::string& step) {
    const std::string text = scenario("software: {name: megatron-core, step: {" + step + "}}") +
                             "memory: {kind: model, use_distributed_optimizer: true}\n";
    return simulate(prepare_first(read_scenario(YamlSource("s.yaml", text))))
        .report.iteration.value();
  };
  EXPECT_GT(with("bucket: 100000"), with("bucket: 10000000"));
  EXPECT_NEAR(with("broadcast: 10 ms"), with("broadcast: 0 ms") + 16 * 10e-3, 1e-6);
}

std::string with_sustained(const std::string& shares) {
  std::string text = scenario("");
  return text.replace(text.find("dgx-h100"), 8,
                      "{name: dgx-h100, gpu: {sustained: " + shares + "}}");
}

double seconds_of(const std::string& text) {
  return simulate(prepare_first(read_scenario(YamlSource("s.yaml", text))))
      .report.iteration.value();
}

TEST(SustainedInAScenario, StandsForTheGpus) {
  EXPECT_EQ(seconds_of(with_sustained("{matmul: 0.84}")), seconds());
  EXPECT_GT(seconds_of(with_sustained("{matmul: 0.5}")), seconds());
  EXPECT_GT(seconds_of(with_sustained("{collectives: 0.1}")), seconds());
  EXPECT_THROW((void)read_scenario(YamlSource("s.yaml", with_sustained("{matmuls: 0.5}"))),
               InputError);
}

TEST(SoftwareInAScenario, TakesNumbersInThePlaceOfTheCatalogues) {
  EXPECT_EQ(seconds("software: {name: megatron-core}"), seconds("software: megatron-core"));
  EXPECT_GT(seconds("software: {name: megatron-core, kernels: {traffic: 2}}"), seconds());
  EXPECT_GT(seconds("software: {name: megatron-core, experts: {fullest: 2}}"), seconds());
  const YamlSource below("s.yaml", scenario("software: nanotron-2024"),
                         {{"cost.software.host.eager", "100 ms", {}}});
  EXPECT_GT(simulate(prepare_first(read_scenario(below))).report.iteration.value(), 5 * seconds());
  EXPECT_NE(refusal("software: {name: megatron-core, kernels: {trafic: 2}}").find("traffic"),
            std::string::npos);
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
