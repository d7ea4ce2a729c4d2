// A framework's configuration that is read back gives the scenario that it was written from: the
// same seconds and memory, or it says what it leaves out. Random scenarios of all models.
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/case/program.h"
#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/interop/configurations/configuration.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/prepare/prepare.h"
#include "sim/read/model.h"
#include "sim/read/scenario.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim::round_trip_test {
namespace {

const int kScenarios = testing::rounds(250);

// A key and the values of which a random scenario takes one; empty: the key is left out.
struct Axis {
  const char* key;
  std::vector<const char*> values;
};

// Every scenario has one value of each of these,
const std::vector<Axis>& sizes() {
  static const std::vector<Axis> kSizes{
      {"cluster", {"dgx-h100", "hgx-b200", "gb200-nvl72"}},
      {"schedule",
       {"1f1b", "1f1b", "{name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 2}",
        "{name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 3, "
        "microbatch_group_size_per_vp_stage: 8}",
        "{name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 2, "
        "overlap_moe_expert_parallel_comm: true, delay_wgrad_compute: true}",
        "zb-1p", "v-half"}},
      {"parallel.pipeline_model_parallel_size", {"1", "1", "2", "4"}},
      {"parallel.tensor_model_parallel_size", {"1", "1", "2", "4"}},
      {"parallel.sequence_parallel", {"", "true"}},
      {"parallel.context_parallel_size", {"1", "1", "1", "2", "4"}},
      {"parallel.data_parallel_size", {"1", "2", "4", "8"}},
      {"batch.num_microbatches", {"8", "16"}},
      {"batch.micro_batch_size", {"1", "1", "2"}},
      {"batch.seq_length", {"2048", "4096"}}};
  return kSizes;
}

// and of these a few: what a framework may have a setting for, and some things that none has.
const std::vector<Axis>& features() {
  static const std::vector<Axis> kFeatures{
      {"parallel.cp_comm_type", {"all_gather", "p2p", "a2a"}},
      {"parallel.expert_model_parallel_size", {"2", "4", "8"}},
      {"parallel.expert_tensor_parallel_size", {"1"}},
      {"parallel.balance", {"auto"}},
      {"parallel.account_for_loss_in_pipeline_split", {"true"}},
      {"recompute",
       {"full", "[core_attn]", "[layernorm]", "[mlp, layernorm]", "[moe_act, layernorm]",
        "[mla_up_proj]", "pointwise", "{granularity: full, method: block, num_layers: 2}",
        "{granularity: full, num_layers: 3}", "{granularity: full, every: 2}"}},
      {"memory.precision", {"fp16", "fp32", "fp8", "mxfp8", "nvfp4"}},
      {"memory.lora_rank", {"16"}},
      {"memory.accumulate_allreduce_grads_in_fp32", {"true", "false"}},
      {"memory.data_parallel_sharding_strategy", {"optim", "optim_grads", "optim_grads_params"}},
      {"memory.use_distributed_optimizer", {"true"}},
      {"memory.data_parallel_shard_degree", {"2"}},
      {"memory.exp_avg_dtype", {"bf16", "fp8"}},
      {"memory.store_param_remainders", {"true"}},
      {"memory.optimizer_offload_fraction", {"0.5"}},
      {"memory.swap_optimizer", {"true"}},
      {"memory.offload_modules", {"[core_attn, attn_proj]", "[attn_norm, mlp_norm]", "[moe_act]"}},
      {"memory.dropout", {"true"}},
      {"memory.flash_attention", {"false"}},
      {"memory.cross_entropy_loss_fusion", {"true"}},
      {"memory.bias_swiglu_fusion", {"false"}},
      {"cost.overlap_grad_reduce", {"true"}},
      {"cost.tp_comm_overlap", {"true"}},
      {"cost.moe_token_dispatcher_type", {"flex"}},
      {"cost.moe_router_force_load_balancing", {"true"}},
      {"cost.software", {"megatron-core-0.12"}},
      {"framework.transfers", {"blocking"}},
      {"optimizer.sync", {"post_validation"}}};
  return kFeatures;
}

void take(const Axis& axis, testing::Random& random, std::vector<Override>& to) {
  const int last = static_cast<int>(axis.values.size()) - 1;
  const char* value = axis.values[static_cast<size_t>(random.integer(0, last))];
  if (*value != '\0') to.push_back({axis.key, value, {}, {}});
}

// Nothing where the choices contradict each other.
std::optional<Case> made_case(testing::Random& random) {
  constexpr int kFeaturesOfOne = 4;
  const auto any_of = [&random](const auto& list) -> const auto& {
    return list[static_cast<size_t>(random.integer(0, static_cast<int>(list.size()) - 1))];
  };
  std::vector<Override> overrides;
  for (const Axis& axis : sizes()) take(axis, random, overrides);
  for (int i = 0; i < kFeaturesOfOne; ++i) take(any_of(features()), random, overrides);
  try {
    const std::string text = "model: " + any_of(catalogue_models()).name;
    return prepare_first(read_scenario(YamlSource("s.yaml", text, overrides)));
  } catch (const InfeasibleError&) {
    return std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

Draft read_back(Framework framework, const std::string& text, const Case& made) {
  const Scenario& scenario = *made.scenario;
  const std::string& cluster = scenario.hardware->name;
  const ParallelSizes& sizes = scenario.parallel;
  if (framework == Framework::kTorchtitan) {
    return torchtitan_draft(read_toml_settings("torchtitan", "job.toml", text), cluster);
  }
  if (framework != Framework::kMegatronBridge) {
    return megatron_draft(read_arguments("run.sh", text), cluster);
  }
  const std::string beside = fmt::format("world_size: {}\nmodel_name: {{model: {}}}\n",
                                         sizes.pipeline * sizes.tensor * sizes.context * sizes.data,
                                         scenario.modelled->model.name);
  return megatron_draft(read_yaml_settings("megatron", "bridge.yaml", text + beside), cluster);
}

struct Answer {
  Seconds step;
  Bytes peak;
};
Answer answer_of(const Case& made) {
  const Result result = simulate(made);
  return {result.report.iteration, *result.report.peak_memory};
}

bool same(const Answer& a, const Answer& b) {
  constexpr double kRounding = 1e-9;
  return std::abs(a.step / b.step - 1) < kRounding && std::abs(a.peak / b.peak - 1) < kRounding;
}

void expect_kept(Framework framework, const Case& made, const std::string& text) {
  const Draft draft = read_back(framework, text, made);
  ASSERT_TRUE(draft.missing.empty() && draft.stops.empty()) << text << summary_of(draft);
  const std::string back = scenario_of(draft);
  const Answer before = answer_of(made);
  const Case again = prepare_first(read_scenario(YamlSource("back.yaml", back)));
  const Answer after = answer_of(again);
  if (made.scenario->sync != OptimizerSync::kPostValidation) {  // which is of fp16
    EXPECT_EQ(again.scenario->modelled->precision, made.scenario->modelled->precision) << text;
  }
  const bool says = text.find("# left out: ") != std::string::npos;
  EXPECT_TRUE(says || same(before, after))
      << fmt::format("{} s and {} B became {} s and {} B\n", before.step.value(),
                     before.peak.value(), after.step.value(), after.peak.value())
      << text << back;
}

TEST(RoundTrip, KeepsSecondsAndMemoryOrSaysWhatIsLeftOut) {
  testing::Random random(1);
  std::map<Framework, int> kept;
  for (int scenarios = 0; scenarios < kScenarios;) {
    const auto made = made_case(random);
    if (!made) continue;
    const auto program = make_program(*made);
    const std::vector<Framework> all = frameworks_of(*made, *program);
    scenarios += all.empty() ? 0 : 1;
    for (const Framework framework : all) {
      expect_kept(framework, *made, configuration_of(framework, *made, *program).text);
      ++kept[framework];
    }
  }
  EXPECT_GE(kept[Framework::kMegatron], kScenarios / 2);
  EXPECT_GE(kept[Framework::kMegatronBridge], kScenarios / 2);
}

}  // namespace
}  // namespace pipesim::round_trip_test
