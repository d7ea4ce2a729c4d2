#include "sim/layouts/runs_on.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>

#include "sim/interop/configurations/torchtitan.h"
#include "sim/interop/megatron/flags.h"
#include "sim/interop/megatron/model_flags.h"
#include "sim/scenario/coupling.h"
#include "sim/scenario/modelled.h"

namespace pipesim {
namespace {

// Megatron-LM's arguments name core_attn, layernorm and the like; full recomputation has its own.
bool has_flags(RecomputeGranularity recompute, bool modules) {
  if (!recompute.of_modules()) return true;
  if (!modules) return recompute == RecomputeGranularity::kSelective;
  for (size_t i = kMegatronModules; i < kRecomputeModules.size(); ++i) {
    if (recompute.any(static_cast<RecomputeModule>(i))) return false;
  }
  return true;
}

// Megatron-FSDP gathers and scatters in every microbatch, and is not said to go with a pipeline.
bool megatron_shards(const PlanQuestion& question, const PlanPoint& point) {
  const ParameterState state = state_of(question, point);
  return !state.sharded_gradients ||
         (point.pipeline == 1 && state.reshard_after_forward && state.reduce_every_microbatch);
}

std::string why_not_sharded(Framework framework, const ParameterState& state) {
  if (framework == Framework::kZeroBubble) return "it has no Megatron-FSDP";
  if (state.reshard_after_forward && state.reduce_every_microbatch) return "";
  return "Megatron-FSDP gathers weights and reduces gradients in every microbatch";
}

bool fork_shards(const PlanQuestion& question, const PlanPoint& point) {
  const ParameterState state = state_of(question, point);
  const bool overlapped = question.base.roofline->overlap.gradient_reduce;
  return !state.sharded_gradients && state.shards() == state.data &&
         !(state.distributed_optimizer && overlapped);
}

bool fork_runs(const PlanQuestion& question, const PlanPoint& point) {
  const Modelled& modelled = *question.base.modelled;
  const auto& schedule = *point.schedule;
  // A plan gives its limit to every schedule that takes one.
  const bool unsaid = schedule.memory_limit && !flags_take_limit(schedule);
  const bool own_width = modelled.model.experts && point.expert_tensor != point.tensor;
  return schedule.runs_on == Runtime::kZeroBubbleFork && !unsaid && point.pipeline > 1 &&
         point.context == 1 && point.split == PlanSplit::kEven && !own_width &&
         fork_shards(question, point) && has_flags(point.recompute, false);
}

// Transformer Engine has latent attention over context ranks in rings alone.
bool has_exchange(const PlanQuestion& question, const PlanPoint& point) {
  if (!question.base.modelled->model.latent || point.context == 1) return true;
  const PlanExchange exchange = exchange_of(question, point);
  return exchange.kind == ContextExchange::kRing ||
         (exchange.kind == ContextExchange::kHeadsAndRing && exchange.hierarchy[1] > 1);
}

// Its assertions on flags of what collectives run beside.
bool megatron_overlaps(const PlanQuestion& question, const PlanPoint& point) {
  const ParameterState state = state_of(question, point);
  const LayerContext& context = question.base.modelled->context;
  const Overlap& overlap = question.base.roofline->overlap;
  const bool divided = state.distributed_optimizer;
  const bool reduces = overlap.gradient_reduce || state.sharded_gradients;
  if (overlap.tensor && point.tensor > 1 && !context.sequence_parallel) return false;
  return (divided || !context.fp8_parameters) && (reduces || !divided || !overlap.parameter_gather);
}

// Its assertions on other flags that stand beside each other.
bool megatron_starts(const PlanQuestion& question, const PlanPoint& point) {
  const Transformer& model = question.base.modelled->model;
  if (model.experts && has_mlp_bias(model) && point.expert_tensor > 1) return false;
  const bool waits = calls_of(question.base.transfers, *point.schedule).has_value();
  return !(waits && point.chunks > 1 && point.pipeline == 2) && megatron_overlaps(question, point);
}

// True of Megatron-Core since a release. A name without one is that of a later one.
bool is_since(double release, const Software& software) {
  const std::string_view family = "megatron-core-";
  if (!software.name.starts_with(family)) return true;
  return std::strtod(software.name.c_str() + family.size(), nullptr) >= release;
}
constexpr double kPlacesLayers = 0.13;     // --pipeline-model-parallel-layout
constexpr double kOverlapsExperts = 0.14;  // --overlap-moe-expert-parallel-comm

// It cannot overlap an exchange that is computed again, nor is it said to beside Megatron-FSDP.
bool megatron_overlaps_experts(const PlanQuestion& question, const PlanPoint& point) {
  if (!point.expert_overlap) return point.pipeline > 1 || point.chunks == 1;
  return is_since(kOverlapsExperts, question.base.roofline->software) &&
         !point.recompute.any(RecomputeModule::kMoe) &&
         !state_of(question, point).sharded_gradients;
}

bool megatron_runs(const PlanQuestion& question, const PlanPoint& point) {
  const bool placed = point.split == PlanSplit::kBalanced;
  if (placed && !is_since(kPlacesLayers, question.base.roofline->software)) return false;
  return megatron_starts(question, point) && megatron_shards(question, point) &&
         has_exchange(question, point) && point.schedule->runs_on == Runtime::kMegatron &&
         has_flags(point.recompute, true) && megatron_overlaps_experts(question, point);
}

bool torchtitan_runs(const PlanQuestion& question, const PlanPoint& point) {
  const bool blocking = calls_of(question.base.transfers, *point.schedule).has_value();
  const bool ordered = point.pipeline == 1
                           ? point.chunks == 1
                           : why_not_scheduled(point.schedule->name, blocking).empty();
  const ParameterState state = state_of(question, point);
  const bool whole = strategy_of(state) == ShardingStrategy::kNoShard && point.context == 1;
  ParameterState own = state;
  shard_as_torchtitan(point.pipeline, point.context, own);
  const bool divided = strategy_of(own) == strategy_of(state) &&
                       own.reduce_every_microbatch == state.reduce_every_microbatch;
  const ContextExchange kind = exchange_of(question, point).kind;
  const bool exchanges =
      point.context == 1 || kind == ContextExchange::kAllGather || kind == ContextExchange::kRing;
  const RecomputeGranularity recompute = point.recompute;
  return ordered && (whole || divided) && exchanges && point.split != PlanSplit::kBalanced &&
         !point.schedule->offloads() &&
         (recompute == RecomputeGranularity::kNone || recompute == RecomputeGranularity::kFull ||
          recompute == RecomputeGranularity::kPointwise);
}

std::string why_torchtitan_runs_none(const PlanQuestion& question) {
  const Modelled& modelled = *question.base.modelled;
  if (std::string why = why_no_flavor(modelled.model); !why.empty()) return why;
  return why_not_set_up(modelled, question.base.roofline->overlap);
}

std::string why_fork_lacks(const Transformer& model) {
  if (model.traced) return "a traced model runs in its own code";
  if (model.attention_window > 0) return "it has no windows of attention";
  if (model.sinks || model.output_gate) return "it has no sinks, and no gate of attention's output";
  if (model.qk_norm == QkNorm::kWithoutWeights) return "it has no norms without weights";
  if (model.latent) return "it has no latent attention";
  if (model.mtp_layers > 0) return "it has no MTP layers";
  return model.experts ? "it has no experts of a width of their own" : "";
}

std::string why_fork_runs_none(const Modelled& modelled, const Overlap& overlap) {
  const OptimizerState plain;
  const OptimizerState& own = modelled.state.optimizer;
  if (std::string why = why_fork_lacks(modelled.model); !why.empty()) return why;
  if (modelled.context.adapter_rank > 0) return "it trains no adapters alone (LoRA)";
  if (modelled.context.offloaded.any()) return "it offloads no modules";
  if (modelled.context.precision == Precision::kFp8) return "its runtime has no fp8";
  if (own.bytes() != plain.bytes() || own.host_fraction > 0 || own.reads_16_bit_gradients) {
    return "it holds the optimizer's states in fp32 on the GPU";
  }
  if (modelled.state.distributed_optimizer && overlap.gradient_reduce) {
    return "it does not overlap gradients with its distributed optimizer";
  }
  return overlap.parameter_gather ? "it gathers no parameters behind forwards" : "";
}

// Neither Megatron-LM nor its fork has a flag.
std::string why_no_setting(const Modelled& modelled, const Software& software) {
  const LayerContext& context = modelled.context;
  const bool fewer_bits = context.fp8_dispatch || context.fp8_combine_gradient;
  const bool held = software.routing > Seconds(0);
  if (fewer_bits && (held || !context.flex_dispatcher)) {
    return "tokens in fp8 between experts need moe_flex_dispatcher_backend: hybridep";
  }
  const bool alone = context.offloaded.any(OffloadModule::kAttentionProjection) &&
                     !context.offloaded.any(OffloadModule::kCoreAttention);
  return alone ? "attn_proj leaves with core_attn alone" : "";
}

}  // namespace

bool may_run(Framework framework, const PlanQuestion& question, const PlanPoint& point) {
  if (point.vocabulary != VocabularyPlacement::kFirstLast || point.offload) return false;
  const bool megatron =
      framework == Framework::kMegatron || framework == Framework::kMegatronBridge;
  if (point.modules.any() && !megatron) return false;
  if (framework == Framework::kTorchtitan) return torchtitan_runs(question, point);
  return framework == Framework::kZeroBubble ? fork_runs(question, point)
                                             : megatron_runs(question, point);
}

std::string why_it_runs_none(Framework framework, const PlanQuestion& question) {
  if (framework == Framework::kTorchtitan) return why_torchtitan_runs_none(question);
  const Modelled& modelled = *question.base.modelled;
  if (std::string fault = why_no_flags(modelled.model); !fault.empty()) return fault;
  const RooflineCost& cost = *question.base.roofline;
  if (std::string fault = why_no_setting(modelled, cost.software); !fault.empty()) return fault;
  const ParameterState& state = modelled.state;
  const bool searched = !question.axes.sharding.empty();
  if (!searched && state.sharded_gradients) {
    if (std::string fault = why_not_sharded(framework, state); !fault.empty()) return fault;
  }
  return framework == Framework::kZeroBubble ? why_fork_runs_none(modelled, cost.overlap) : "";
}

// CommOverlapConfig of Megatron-Bridge (training/comm_overlap.py, 0685ff5) overlaps gradients and
// parameters wherever there are data ranks and a distributed optimizer; Megatron-LM overlaps
// neither unless its flags say so.
std::vector<FrameworkDefault> defaults_of(Framework framework) {
  if (framework == Framework::kTorchtitan) {
    return {{"framework.transfers", "blocking"},
            {"memory.data_parallel_sharding_strategy",
             std::string(to_text(ShardingStrategy::kOptimGradsParams))}};
  }
  if (framework != Framework::kMegatronBridge) return {};
  return {{"cost.overlap_grad_reduce", "true"}, {"cost.overlap_param_gather", "true"}};
}

}  // namespace pipesim
