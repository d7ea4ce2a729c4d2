#include "sim/interop/megatron/setting_flags.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/interop/megatron/model_flags.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

// True where a model has the module.
bool has_module(const Transformer& model, RecomputeModule module) {
  switch (module) {
    case RecomputeModule::kMoe:
    case RecomputeModule::kMoeActivation:
      return model.experts.has_value();
    case RecomputeModule::kSharedExperts:
      return model.experts && model.experts->shared_experts > 0;
    case RecomputeModule::kLatentUp:
    case RecomputeModule::kLatentNorm:
      return model.latent.has_value();
    default:
      return true;
  }
}

void add_recomputed_modules(RecomputeGranularity recompute, const Transformer& model,
                            MegatronFlags& to) {
  std::string known;
  std::vector<std::string_view> others;
  for (size_t i = 0; i < kRecomputeModules.size(); ++i) {
    const auto module = static_cast<RecomputeModule>(i);
    if (!recompute.any(module) || !has_module(model, module)) continue;
    if (i < kMegatronModules) {
      known += fmt::format(" {}", kRecomputeModules[i]);
    } else {
      others.push_back(kRecomputeModules[i]);
    }
  }
  if (!known.empty()) {
    to.flags.emplace_back("--recompute-granularity selective");
    if (recompute != RecomputeGranularity::kSelective) {
      to.flags.push_back("--recompute-modules" + known);
    }
  }
  if (!others.empty()) {
    to.differences.push_back(
        fmt::format("{} recomputed, for which it has no flag", fmt::join(others, ", ")));
  }
}

std::vector<std::string> joined(std::vector<std::string> all, std::vector<std::string> more) {
  std::ranges::move(more, std::back_inserter(all));
  return all;
}

// One scale a tensor from the step before, unless what is recomputed would be scaled twice.
void add_eight_bits(const Modelled& modelled, RecomputeGranularity recompute, MegatronFlags& to) {
  to.flags.emplace_back("--fp8-format hybrid");
  const bool again =
      recompute.any(RecomputeModule::kLayerNorm) || recompute.any(RecomputeModule::kMoeActivation);
  if (modelled.block_scaled) {
    to.flags.emplace_back("--fp8-recipe mxfp8");
  } else if (recompute.of_modules() && again) {
    to.flags.emplace_back("--fp8-recipe tensorwise");
  }
}

// Gradients are summed in fp32 beside bf16 weights, unless asked for otherwise, and as they are
// beside fp16 ones.
void add_gradients(bool half, bool in_fp32, MegatronFlags& to) {
  if (half && in_fp32) to.flags.emplace_back("--accumulate-allreduce-grads-in-fp32");
  if (!half && !in_fp32) to.flags.emplace_back("--grad-reduce-in-bf16");
}

void add_differences(const LayerContext& context, MegatronFlags& to) {
  if (context.adapter_rank > 0) {
    to.differences.emplace_back("adapters alone trained (LoRA), for which it has no flag");
  }
  if (context.fp32_weights) {
    to.differences.emplace_back("weights in fp32 (autocast), for which it has no flag");
  }
  if (context.precision == Precision::kFp32 && context.flash_attention) {
    to.differences.emplace_back("flash attention in fp32, which it has in 16 bits alone");
  }
}

// Dropout is Megatron-LM's default. Post-validation needs fp16.
void add_precision(const Scenario& scenario, const LayerContext& context, bool validates,
                   MegatronFlags& to) {
  const Modelled& modelled = *scenario.modelled;
  const bool half = validates || modelled.precision == "fp16";
  const bool whole = context.precision == Precision::kFp32;
  if (!whole) to.flags.emplace_back(half ? "--fp16" : "--bf16");
  const bool megatron = to.runtime == to_text(Runtime::kMegatron);
  const auto add = [&](bool asked, const char* flag) {
    if (!asked) return;
    if (megatron) {
      to.flags.emplace_back(flag);
    } else {
      to.differences.push_back(fmt::format("{}, which is Megatron-LM's alone", flag));
    }
  };
  if (context.precision == Precision::kFp8) add_eight_bits(modelled, context.recompute, to);
  add(context.precision == Precision::kFp4, "--fp4-format e2m1");
  const bool divided = modelled.state.distributed_optimizer;
  add(context.fp8_parameters && divided, "--fp8-param-gather");
  if (context.fp8_parameters && !divided) {
    to.differences.emplace_back(
        "fp8_param_gather without use_distributed_optimizer, which it refuses");
  }
  add(!context.fused_gate, "--no-bias-swiglu-fusion");
  add(!context.flash_attention, "--attention-backend unfused");
  if (context.fused_loss) to.flags.emplace_back("--cross-entropy-loss-fusion");
  if (!whole) add_gradients(half, modelled.state.gradients_in_fp32, to);
  if (context.dropout) return;
  to.flags.emplace_back("--hidden-dropout 0");
  to.flags.emplace_back("--attention-dropout 0");
}

// The precision-aware optimizer, and states on the host, which reuse its code.
std::vector<std::string> state_flags(const ParameterState& state) {
  const OptimizerState& optimizer = state.optimizer;
  const OptimizerState usual;
  const auto dtype = [](double bytes) { return bytes == 1 ? "fp8" : bytes == 2 ? "bf16" : "fp32"; };
  std::vector<std::string> flags;
  if (optimizer.main_params == 2 && !optimizer.remainders) {
    flags.emplace_back("--main-params-dtype fp16");
  }
  if (optimizer.reads_16_bit_gradients) flags.emplace_back("--main-grads-dtype bf16");
  if (optimizer.exp_avg != usual.exp_avg) {
    flags.push_back(fmt::format("--exp-avg-dtype {}", dtype(optimizer.exp_avg)));
  }
  if (optimizer.exp_avg_sq != usual.exp_avg_sq) {
    flags.push_back(fmt::format("--exp-avg-sq-dtype {}", dtype(optimizer.exp_avg_sq)));
  }
  if (optimizer.host_fraction > 0 && !optimizer.swapped) {
    flags.emplace_back("--optimizer-cpu-offload");
    flags.push_back(fmt::format("--optimizer-offload-fraction {:g}", optimizer.host_fraction));
    if (optimizer.overlaps_host) flags.emplace_back("--overlap-cpu-optimizer-d2h-h2d");
  }
  return flags;
}

// It needs the distributed one.
void add_optimizer_state(const Modelled& modelled, MegatronFlags& to) {
  const OptimizerState& optimizer = modelled.state.optimizer;
  std::vector<std::string> flags = state_flags(modelled.state);
  if (optimizer.swapped) {
    to.differences.emplace_back("optimizer states that come to the GPU for its update");
  }
  if (flags.empty() && !optimizer.remainders) return;
  to.flags.emplace_back("--use-precision-aware-optimizer");
  to.flags = joined(std::move(to.flags), std::move(flags));
  if (!modelled.state.distributed_optimizer) {
    to.differences.emplace_back("the precision-aware optimizer without the distributed one");
  }
  if (modelled.precision != "fp16" && !optimizer.remainders && optimizer.main_params == 4 &&
      optimizer.host_fraction == 0) {
    to.left_out.emplace_back(
        "fp32 master weights: from Transformer Engine 2.1 on it stores only the 2 bytes that bf16 "
        "weights lack (memory.store_param_remainders)");
  }
}

// Flags for activations kept in fewer bits, or on the host.
void add_kept_activations(const LayerContext& context, MegatronFlags& to) {
  const bool alone = context.offloaded.any(OffloadModule::kAttentionProjection) &&
                     !context.offloaded.any(OffloadModule::kCoreAttention);
  if (alone) {
    to.differences.emplace_back("attn_proj offloaded without core_attn, which it refuses");
  } else if (context.offloaded.any()) {
    to.flags.emplace_back("--fine-grained-activation-offloading");
    to.flags.push_back("--offload-modules " + to_text(context.offloaded, " "));
  }
  if (context.fp8_activation_input) {
    to.differences.emplace_back(
        "activation_func_fp8_input_store, a field of TransformerConfig without a flag");
  }
  if (context.attention_output_bits > 0) {
    to.differences.push_back(fmt::format("attention's output in {} bits, for which it has no flag",
                                         context.attention_output_bits));
  }
}

// The dispatcher `flex` asks one library or the other; only that of NCCL sends fewer bits, into
// experts that take them as they come.
void add_backend(const Software& software, const LayerContext& context, MegatronFlags& to) {
  const bool fewer_bits = context.fp8_dispatch || context.fp8_combine_gradient;
  const bool held = software.routing > Seconds(0);  // the host waits: DeepEP
  if (fewer_bits && (held || !context.flex_dispatcher)) {
    to.differences.emplace_back(
        "tokens in fp8 between experts, which it sends where the host does not wait "
        "(moe_flex_dispatcher_backend hybridep)");
  } else if (fewer_bits) {
    to.flags.emplace_back("--moe-flex-dispatcher-backend ncclep");
    to.flags.emplace_back("--use-transformer-engine-op-fuser");
    if (context.fp8_dispatch) to.flags.emplace_back("--moe-dispatch-fwd-dtype mxfp8");
    if (context.fp8_combine_gradient) to.flags.emplace_back("--moe-combine-bwd-dtype mxfp8");
  } else if (context.flex_dispatcher && !held) {
    to.flags.emplace_back("--moe-flex-dispatcher-backend hybridep");
  }
}

// The exchange of a mixture of experts. Without a flag tokens are gathered, not
// exchanged.
void add_exchange(const Scenario& scenario, const LayerContext& context, MegatronFlags& to) {
  const Transformer& model = scenario.modelled->model;
  if (!model.experts) return;
  to.flags.push_back(
      fmt::format("--moe-token-dispatcher-type {}", context.flex_dispatcher ? "flex" : "alltoall"));
  const Software software = scenario.roofline ? scenario.roofline->software : Software{};
  if (software.permuting < 1) to.flags.emplace_back("--moe-permute-fusion");
  if (software.fullest == 1) to.flags.emplace_back("--moe-router-force-load-balancing");
  add_backend(software, context, to);
}

// Collectives that run beside compute, where there are any: it refuses the flags alone.
// Megatron-FSDP overlaps all that it does in every microbatch.
void add_overlap(const Scenario& scenario, const LayerContext& context, MegatronFlags& to) {
  const ParameterState& state = scenario.modelled->state;
  const Overlap overlap = scenario.roofline ? scenario.roofline->overlap : Overlap{};
  const bool reduces = overlap.gradient_reduce || state.sharded_gradients;
  const bool gathers =
      state.distributed_optimizer && (overlap.parameter_gather || state.sharded_weights);
  if (overlap.tensor && context.tensor > 1) {
    if (context.sequence_parallel) {
      to.flags.emplace_back("--tp-comm-overlap");
    } else {
      to.differences.emplace_back("tp_comm_overlap without sequence_parallel, which it refuses");
    }
  }
  if (reduces) to.flags.emplace_back("--overlap-grad-reduce");
  if (gathers && reduces) {
    to.flags.emplace_back("--overlap-param-gather");
  } else if (gathers) {
    to.differences.emplace_back(
        "overlap_param_gather without overlap_grad_reduce, which it refuses");
  }
}

// Megatron-FSDP, which says that it goes with tensor, context and expert ranks.
void add_sharding(const ParameterState& state, int devices, MegatronFlags& to) {
  if (state.distributed_optimizer) to.flags.emplace_back("--use-distributed-optimizer");
  if (state.shards() < state.data) {
    to.flags.push_back(
        fmt::format("--num-distributed-optimizer-instances {}", state.data / state.shards()));
  }
  if (!state.sharded_gradients) return;
  to.flags.emplace_back("--use-megatron-fsdp");
  to.flags.push_back(
      fmt::format("--data-parallel-sharding-strategy {}", to_text(strategy_of(state))));
  to.flags.emplace_back("--ckpt-format fsdp_dtensor");
  to.flags.emplace_back("--no-gradient-accumulation-fusion");
  if (!state.reshard_after_forward) {
    to.differences.emplace_back("weights that stay gathered after forward have no flag");
  }
  if (!state.reduce_every_microbatch) {
    to.differences.emplace_back("gradients that are reduced once an iteration have no flag");
  }
  if (devices > 1) {
    to.differences.emplace_back("sharded gradients in a pipeline, with which it is not said to go");
  }
}

// Megatron-LM's own is p2p. Its fork knows no context ranks.
void add_context_exchange(const Modelled& modelled, const LayerContext& context,
                          MegatronFlags& to) {
  if (context.context == 1) return;
  std::string kinds{to_text(context.exchange)};
  if (context.window_exchange) {
    kinds.clear();
    for (const ContextExchange exchange : exchanges_of_layers(modelled.model, context)) {
      kinds += fmt::format("{}{}", kinds.empty() ? "" : " ", to_text(exchange));
    }
  }
  to.flags.push_back("--cp-comm-type " + kinds);
  if (uses(context, ContextExchange::kHeadsAndRing)) {
    to.flags.push_back(
        fmt::format("--hierarchical-context-parallel-sizes {}", fmt::join(context.hierarchy, " ")));
  }
  if (context.repeats_keys) {
    to.differences.emplace_back("keys and values repeated for every query head (kv_head_repeat)");
  }
  if (modelled.model.latent && ring_ranks(context) == 1) {
    to.differences.push_back(fmt::format(
        "latent attention with cp_comm_type {}, which Transformer Engine refuses: p2p and a2a+p2p "
        "have it",
        to_text(context.exchange)));
  }
}

// It takes as many as tensor ranks, unless it is told; one for experts with biases.
void add_expert_tensor(const Transformer& model, const LayerContext& context, MegatronFlags& to) {
  if (!model.experts) return;
  const bool whole = context.expert_tensor > 1 && has_mlp_bias(model);
  const int ranks = whole ? 1 : context.expert_tensor;
  if (ranks != context.tensor) {
    to.flags.push_back(fmt::format("--expert-tensor-parallel-size {}", ranks));
  }
  if (whole) to.differences.emplace_back("experts with biases over several tensor ranks");
}

// Flags for sizes that only a model has, and for recomputation without passes of its own.
void add_model_sizes(const Scenario& scenario, const LayerContext& context, int devices,
                     MegatronFlags& to) {
  const Modelled& modelled = *scenario.modelled;
  add_model(modelled.model, context.tensor, context.seq_length, to);
  // Megatron-Core refuses it on one tensor rank, where it means nothing.
  if (context.sequence_parallel && context.tensor > 1) {
    to.flags.emplace_back("--sequence-parallel");
  }
  if (context.expert > 1) {
    to.flags.push_back(fmt::format("--expert-model-parallel-size {}", context.expert));
  }
  add_expert_tensor(modelled.model, context, to);
  add_sharding(modelled.state, devices, to);
  add_optimizer_state(modelled, to);
  add_kept_activations(context, to);
  to.flags.push_back(fmt::format("--seq-length {}", context.seq_length));
  if (context.recompute.of_modules()) add_recomputed_modules(context.recompute, modelled.model, to);
  if (context.recompute.of_modules() && !context.recomputed_layers.all()) {
    to.differences.emplace_back(
        "modules recomputed in a part of the layers, for which it has no flag");
  }
  add_exchange(scenario, context, to);
  add_context_exchange(modelled, context, to);
}

// Seconds that come from elsewhere, or from another release, have no flag.
void add_origins(const RooflineCost& cost, MegatronFlags& to) {
  constexpr std::string_view kNewest = "megatron-core";
  if (cost.software.name != kNewest) {
    to.left_out.push_back(fmt::format("its release: cost.software {}", cost.software.name));
  }
  if (cost.anchor) to.left_out.push_back("cost.anchor " + cost.anchor->file);
  if (cost.calibration) to.left_out.push_back("cost.calibration " + cost.calibration->file);
}

}  // namespace

void add_setting(const Case& made, bool validates, MegatronFlags& to) {
  const Scenario& scenario = *made.scenario;
  if (scenario.roofline) add_origins(*scenario.roofline, to);
  add_model_sizes(scenario, *made.context, made.problem.shape.devices, to);
  add_precision(scenario, *made.context, validates, to);
  add_differences(*made.context, to);
  add_overlap(scenario, *made.context, to);
}

}  // namespace pipesim
