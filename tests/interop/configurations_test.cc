// Configurations of frameworks: that the fields of Megatron-Bridge are its own, and that reading
// one gives the case that it was written from.
#include <algorithm>
#include <gtest/gtest.h>

#include "sim/case/program.h"
#include "sim/core/error.h"
#include "sim/interop/configurations/configuration.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::configurations_test {
namespace {

const std::string kScenario =
    "model: mixtral-8x7b\ncluster: dgx-h100\n"
    "schedule: {name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 2}\n"
    "parallel: {pipeline_model_parallel_size: 4, tensor_model_parallel_size: 2, sequence_parallel: "
    "true, "
    "expert_model_parallel_size: 4, expert_tensor_parallel_size: 1, data_parallel_size: 4}\n"
    "batch: {global_batch_size: 64, micro_batch_size: 1, seq_length: 4096}\n"
    "recompute: [core_attn, moe_act]\n"
    "memory: {kind: model, use_distributed_optimizer: true, exp_avg_dtype: bf16, exp_avg_sq_dtype: "
    "fp8, optimizer_offload_fraction: 0.5, overlap_cpu_optimizer_d2h_h2d: true, offload_modules: "
    "[attn_norm, expert_fc1]}\n"
    "cost: {kind: roofline, overlap_grad_reduce: true, overlap_param_gather: true, "
    "moe_token_dispatcher_type: flex, moe_flex_dispatcher_backend: hybridep, "
    "moe_dispatch_fwd_dtype: fp8}\n";

Case case_of(const std::string& text) {
  return prepare_first(read_scenario(YamlSource("s.yaml", text)));
}

std::string bridge_of(const Case& made) {
  return configuration_of(Framework::kMegatronBridge, made, *make_program(made)).text;
}

YAML::Node table(const std::string& file) {
  return YamlSource::from_file(PIPESIM_SOURCE_DIR "/tests/interop/data/" + file, {}).root().node();
}

TEST(Configurations, OfBridgeHaveItsFields) {
  const YAML::Node fields = table("megatron_bridge.yaml");
  const YAML::Node arguments = table("megatron_lm.yaml")["arguments"];
  const YAML::Node written = YamlSource("bridge.yaml", bridge_of(case_of(kScenario))).root().node();
  size_t found = 0;
  for (const auto& section : written) {
    for (const auto& field : section.second) {
      const auto name = field.first.as<std::string>();
      std::string flag = "--" + name;
      std::ranges::replace(flag, '_', '-');
      const YAML::Node own = fields[section.first.as<std::string>()];
      ASSERT_TRUE(own) << section.first;
      const bool known =
          std::ranges::any_of(
              own, [&](const YAML::Node& each) { return each.as<std::string>() == name; }) ||
          (section.first.as<std::string>() == "model" && arguments[flag]);
      EXPECT_TRUE(known) << section.first << "." << name;
      ++found;
    }
  }
  EXPECT_GE(found, 20U);
}

TEST(Configurations, OfBridgeAreReadAsTheCaseTheyAreOf) {
  const Case made = case_of(kScenario);
  const std::string text = bridge_of(made) + "world_size: 32\nmodel_name: {model: mixtral-8x7b}\n";
  const Draft draft =
      megatron_draft(read_yaml_settings("megatron", "bridge.yaml", text), "dgx-h100");
  EXPECT_TRUE(draft.unknown.empty()) << summary_of(draft);
  EXPECT_TRUE(draft.not_modelled.empty()) << summary_of(draft);
  const Case again = case_of(scenario_of(draft));
  EXPECT_EQ(again.problem.shape.microbatches, made.problem.shape.microbatches);
  EXPECT_EQ(again.problem.shape.chunks, made.problem.shape.chunks);
  ASSERT_EQ(again.problem.stages.size(), made.problem.stages.size());
  for (size_t i = 0; i < made.problem.stages.size(); ++i) {
    EXPECT_EQ(again.problem.stages[i].forward, made.problem.stages[i].forward);
    EXPECT_EQ(again.problem.stages[i].activation, made.problem.stages[i].activation);
  }
}

constexpr const char* kFsdp =
    "model: llama3-8b\ncluster: dgx-h100\nschedule: 1f1b\n"
    "parallel: {pipeline_model_parallel_size: 1, data_parallel_size: 16}\n"
    "batch: {global_batch_size: 64, micro_batch_size: 1, seq_length: 4096}\n"
    "memory: {data_parallel_sharding_strategy: optim_grads_params, data_parallel_shard_degree: "
    "8}\n";

TEST(Configurations, OfMegatronFsdpAreReadAsWhatTheyDivide) {
  const Case made = case_of(kFsdp);
  const std::string text = bridge_of(made) + "world_size: 16\nmodel_name: {model: llama3-8b}\n";
  const YAML::Node fields = table("megatron_bridge.yaml");
  const YAML::Node written = YamlSource("bridge.yaml", bridge_of(made)).root().node();
  for (const char* field :
       {"use_megatron_fsdp", "data_parallel_sharding_strategy", "overlap_grad_reduce"}) {
    EXPECT_TRUE(std::ranges::any_of(fields["ddp"], [&](const YAML::Node& each) {
      return each.as<std::string>() == field;
    })) << field;
  }
  EXPECT_EQ(written["ddp"]["use_megatron_fsdp"].as<bool>(), true);
  EXPECT_EQ(written["checkpoint"]["ckpt_format"].as<std::string>(), "fsdp_dtensor");
  EXPECT_EQ(written["model"]["gradient_accumulation_fusion"].as<bool>(), false);
  const Draft draft =
      megatron_draft(read_yaml_settings("megatron", "bridge.yaml", text), "dgx-h100");
  EXPECT_TRUE(draft.unknown.empty()) << summary_of(draft);
  EXPECT_TRUE(draft.not_modelled.empty()) << summary_of(draft);
  const Case again = case_of(scenario_of(draft));
  EXPECT_EQ(again.problem.stages[0].forward, made.problem.stages[0].forward);
  EXPECT_EQ(again.memory->devices[0].total(), made.memory->devices[0].total());
}

TEST(Configurations, SayPrecisionAndFusedKernels) {
  const Case made = prepare_first(read_scenario(
      YamlSource("s.yaml", kFsdp,
                 std::vector<Override>{{"memory.precision", "mxfp8", {}, {}},
                                       {"memory.fp8_param_gather", "true", {}, {}},
                                       {"memory.cross_entropy_loss_fusion", "true", {}, {}},
                                       {"memory.bias_swiglu_fusion", "false", {}, {}}})));
  const std::string text = bridge_of(made) + "world_size: 16\nmodel_name: {model: llama3-8b}\n";
  const Draft draft =
      megatron_draft(read_yaml_settings("megatron", "bridge.yaml", text), "dgx-h100");
  EXPECT_TRUE(draft.unknown.empty()) << summary_of(draft);
  EXPECT_TRUE(draft.not_modelled.empty()) << summary_of(draft);
  const Case again = case_of(scenario_of(draft));
  EXPECT_EQ(again.problem.stages[0].forward, made.problem.stages[0].forward);
  EXPECT_EQ(again.problem.stages[0].activation, made.problem.stages[0].activation);
  EXPECT_EQ(again.memory->devices[0].total(), made.memory->devices[0].total());
}

TEST(Configurations, OfShardedGradientsAreForOneDeviceAndEveryMicrobatch) {
  const auto frameworks = [](const std::string& overrides) {
    const std::vector<Override> changed{{overrides.substr(0, overrides.find('=')),
                                         overrides.substr(overrides.find('=') + 1),
                                         {},
                                         {}}};
    const Case made = prepare_first(read_scenario(YamlSource("s.yaml", kFsdp, changed)));
    return frameworks_of(made, *make_program(made)).size();
  };
  EXPECT_EQ(frameworks("batch.seq_length=2048"), 3U);
  EXPECT_EQ(frameworks("memory.reshard_after_forward=false"), 1U);  // torchtitan
  EXPECT_EQ(frameworks("memory.reduce_every_microbatch=false"), 0U);
  EXPECT_EQ(frameworks("parallel.pipeline_model_parallel_size=2"), 0U);
}

TEST(Configurations, AreOfTheFrameworksThatRunTheCaseAsItStands) {
  const auto frameworks = [](const std::string& schedule, const std::string& more) {
    const Case made =
        case_of("model: llama3-70b\ncluster: dgx-h100\nschedule: " + schedule +
                "\nparallel: {pipeline_model_parallel_size: 4, tensor_model_parallel_size: 8}\n"
                "batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}\n" +
                more);
    return frameworks_of(made, *make_program(made));
  };
  const std::vector<Framework> both{Framework::kMegatron, Framework::kMegatronBridge};
  EXPECT_EQ(frameworks("1f1b", ""), both);
  EXPECT_EQ(frameworks("interleaved-1f1b", "recompute: full\n"), both);
  EXPECT_EQ(frameworks("zb-1p", ""), std::vector<Framework>{Framework::kZeroBubble});
  EXPECT_TRUE(frameworks("1f1b", "recompute: [mlp_act]\n").empty());
  EXPECT_EQ(frameworks("gpipe", ""), std::vector<Framework>{Framework::kTorchtitan});
  EXPECT_TRUE(frameworks("gpipe", "recompute: [mlp_act]\n").empty());
}

}  // namespace
}  // namespace pipesim::configurations_test
