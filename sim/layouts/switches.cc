#include "sim/layouts/switches.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/read/modelled.h"
#include "sim/scenario/modelled.h"

namespace pipesim {
namespace {

std::string flag(bool value) { return value ? "true" : "false"; }
std::string dtype(double bytes) { return bytes == 1 ? "fp8" : bytes == 2 ? "bf16" : "fp32"; }

bool always(const Scenario& /*base*/) { return true; }
bool adds_in_fp32(const Scenario& base) { return !base.modelled->state.in_fp32(); }
bool overlaps_tensor(const Scenario& base) { return base.modelled->context.sequence_parallel; }
bool gathers(const Scenario& base) { return base.modelled->state.distributed_optimizer; }
bool in_fp8(const Scenario& base) { return base.modelled->context.precision == Precision::kFp8; }
bool of_experts(const Scenario& base) { return base.modelled->model.experts.has_value(); }
// Weights in 16 bits beside an fp32 copy on the GPU, of a distributed optimizer.
bool keeps_remainders(const Scenario& base) {
  const ParameterState& state = base.modelled->state;
  return gathers(base) && !base.modelled->context.fp8_parameters && !in_fp8(base) &&
         !state.in_fp32() && state.optimizer.host_fraction == 0;
}
bool has_moments(const Scenario& base) { return gathers(base) && of_experts(base); }

// Blackwell's recipes use HybridEP, which keeps routing on the GPU; Hopper's use DeepEP where it
// runs.
bool has_hybrid_dispatch(const Scenario& base) {
  const bool alone = !why_no_deepep(*base.hardware).empty();
  return of_experts(base) && (alone || base.hardware->gpu.has(Precision::kFp4));
}

struct Known {
  std::string_view path;
  std::string_view tuned;
  bool (*applies)(const Scenario& base);
  std::string (*value)(const Scenario& base);

  [[nodiscard]] std::string_view name() const { return path.substr(path.find('.') + 1); }
  [[nodiscard]] bool of_optimizer() const { return name().find("_dtype") != std::string::npos; }
};

// NVIDIA-NeMo/Megatron-Bridge@067f987: perf_recipes/_common.py and the recipes beside it,
// training/comm_overlap.py, training/mixed_precision.py; moments in bf16 by those of DeepSeek-V3
// and Qwen3. The dispatcher is that of most recipes with experts.
constexpr std::array kSwitches{
    Known{"cost.overlap_grad_reduce", "true", always,
          [](const Scenario& base) { return flag(base.roofline->overlap.gradient_reduce); }},
    Known{"cost.overlap_param_gather", "true", gathers,
          [](const Scenario& base) { return flag(base.roofline->overlap.parameter_gather); }},
    Known{"cost.tp_comm_overlap", "true", overlaps_tensor,
          [](const Scenario& base) { return flag(base.roofline->overlap.tensor); }},
    Known{"memory.accumulate_allreduce_grads_in_fp32", "false", adds_in_fp32,
          [](const Scenario& base) { return flag(base.modelled->state.gradients_in_fp32); }},
    Known{"memory.cross_entropy_loss_fusion", "true", always,
          [](const Scenario& base) { return flag(base.modelled->context.fused_loss); }},
    Known{"memory.fp8_param_gather", "true", in_fp8,
          [](const Scenario& base) { return flag(base.modelled->context.fp8_parameters); }},
    Known{"memory.store_param_remainders", "true", keeps_remainders,
          [](const Scenario& base) { return flag(base.modelled->state.optimizer.remainders); }},
    Known{"memory.exp_avg_dtype", "bf16", has_moments,
          [](const Scenario& base) { return dtype(base.modelled->state.optimizer.exp_avg); }},
    Known{"memory.exp_avg_sq_dtype", "bf16", has_moments,
          [](const Scenario& base) { return dtype(base.modelled->state.optimizer.exp_avg_sq); }},
    Known{"cost.moe_token_dispatcher_type", "flex", of_experts,
          [](const Scenario& base) {
            return std::string(base.modelled->context.flex_dispatcher ? "flex" : "alltoall");
          }},
    Known{"cost.moe_flex_dispatcher_backend", "hybridep", has_hybrid_dispatch,
          [](const Scenario& base) {
            return std::string(base.roofline->software.routing > Seconds(0) ? "deepep"
                                                                            : "hybridep");
          }}};

// A dispatcher that is said, or that the GPUs cannot run.
bool is_of_another_dispatcher(const Known& known, const Scenario& base, bool said) {
  const bool runs = why_no_flex(*base.hardware).empty();
  return known.name().starts_with("moe_") &&
         (!runs || (said && known.applies == has_hybrid_dispatch));
}

bool has_recipes(std::optional<Framework> framework) {
  return !framework || framework == Framework::kMegatron || framework == Framework::kMegatronBridge;
}

}  // namespace

std::vector<PlanSetting> tuned_switches(std::optional<Framework> framework,
                                        const PlanQuestion& question,
                                        const std::vector<PlanSetting>& said) {
  std::vector<PlanSetting> all;
  if (!has_recipes(framework)) return all;
  const auto says = [&said](std::string_view path) {
    return std::ranges::find(said, path, &PlanSetting::path) != said.end();
  };
  const auto precision = std::ranges::find(said, "memory.precision", &PlanSetting::path);
  const bool in_fp16 = precision != said.end() && precision->value == "fp16";
  const bool own_optimizer =
      in_fp16 || says("memory.main_params_dtype") || says("memory.store_param_remainders") ||
      std::ranges::any_of(
          kSwitches, [&](const Known& each) { return each.of_optimizer() && says(each.path); });
  for (const Known& each : kSwitches) {
    const bool optimizer = each.of_optimizer() || each.applies == keeps_remainders;
    if (is_of_another_dispatcher(each, question.base, says("cost.moe_token_dispatcher_type"))) {
      continue;
    }
    if (says(each.path) || !each.applies(question.base) || (optimizer && own_optimizer)) continue;
    all.push_back({std::string(each.path), std::string(each.tuned)});
  }
  return all;
}

namespace {

// A backend stands beside the dispatcher `flex` alone.
bool is_set(const Known& known, const Scenario& base) {
  const bool backend = known.applies == has_hybrid_dispatch;
  return known.applies(base) && (!backend || base.modelled->context.flex_dispatcher);
}

}  // namespace

std::vector<PlanSwitch> switches_of(const PlanQuestion& question, const PlanPoint& point) {
  Scenario base = question.base;
  if (of_experts(base)) dispatch_by(dispatcher_of(question, point), question, base);
  std::vector<PlanSwitch> all;
  for (const Known& each : kSwitches) {
    if (is_set(each, base)) all.push_back({each.name(), each.value(base)});
  }
  if (!of_experts(base)) return all;
  for (const std::string_view name : kExpertOverlap)
    all.push_back({name, flag(point.expert_overlap)});
  return all;
}

std::string switches_text(const PlanQuestion& question) {
  std::vector<std::string> all;
  for (const Known& each : kSwitches) {
    if (!is_set(each, question.base) || each.value(question.base) != each.tuned) continue;
    all.push_back(each.tuned == "true" ? std::string(each.name())
                                       : fmt::format("{}={}", each.name(), each.tuned));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace pipesim
