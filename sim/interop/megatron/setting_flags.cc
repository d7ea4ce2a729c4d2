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

void add_recomputed_modules(RecomputeGranularity recompute, MegatronFlags& to) {
  std::string known;
  std::vector<std::string_view> others;
  for (size_t i = 0; i < kRecomputeModules.size(); ++i) {
    if (!recompute.any(static_cast<RecomputeModule>(i))) continue;
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

// Gradients in fp32 and dropout are Megatron-LM's defaults. Post-validation needs fp16.
void add_precision(const Scenario& scenario, const LayerContext& context, bool validates,
                   MegatronFlags& to) {
  const bool in_fp32 = scenario.modelled->state.gradients_in_fp32;
  to.flags.emplace_back(validates ? "--fp16" : "--bf16");
  const bool megatron = to.runtime == to_text(Runtime::kMegatron);
  const auto add = [&](bool asked, const char* flag) {
    if (!asked) return;
    if (megatron) {
      to.flags.emplace_back(flag);
    } else {
      to.differences.push_back(fmt::format("{}, which is Megatron-LM's alone", flag));
    }
  };
  const bool in_fp8 = context.precision == Precision::kFp8;
  if (in_fp8) to.flags.emplace_back("--fp8-format hybrid");
  add(in_fp8 && scenario.modelled->block_scaled, "--fp8-recipe mxfp8");
  add(context.precision == Precision::kFp4, "--fp4-format e2m1");
  add(context.fp8_parameters, "--fp8-param-gather");
  add(!context.fused_gate, "--no-bias-swiglu-fusion");
  add(!context.flash_attention, "--attention-backend unfused");
  if (context.fused_loss) to.flags.emplace_back("--cross-entropy-loss-fusion");
  if (!in_fp32) to.flags.emplace_back("--grad-reduce-in-bf16");
  if (context.dropout) return;
  to.flags.emplace_back("--hidden-dropout 0");
  to.flags.emplace_back("--attention-dropout 0");
}

// Both reuse the code of the precision-aware optimizer, which needs the distributed one.
void add_optimizer_state(const ParameterState& state, MegatronFlags& to) {
  const OptimizerState& optimizer = state.optimizer;
  const OptimizerState usual;
  const auto dtype = [](double bytes) { return bytes == 1 ? "fp8" : bytes == 2 ? "bf16" : "fp32"; };
  std::vector<std::string> flags;
  if (optimizer.main_params != usual.main_params && !optimizer.remainders) {
    flags.emplace_back("--main-params-dtype fp16");
  }
  if (optimizer.reads_16_bit_gradients) flags.emplace_back("--main-grads-dtype bf16");
  if (optimizer.exp_avg != usual.exp_avg) {
    flags.push_back(fmt::format("--exp-avg-dtype {}", dtype(optimizer.exp_avg)));
  }
  if (optimizer.exp_avg_sq != usual.exp_avg_sq) {
    flags.push_back(fmt::format("--exp-avg-sq-dtype {}", dtype(optimizer.exp_avg_sq)));
  }
  if (optimizer.host_fraction > 0) {
    flags.emplace_back("--optimizer-cpu-offload");
    flags.push_back(fmt::format("--optimizer-offload-fraction {:g}", optimizer.host_fraction));
    if (optimizer.overlaps_host) flags.emplace_back("--overlap-cpu-optimizer-d2h-h2d");
  }
  if (flags.empty() && !optimizer.remainders) return;
  to.flags.emplace_back("--use-precision-aware-optimizer");
  to.flags = joined(std::move(to.flags), std::move(flags));
  if (!state.distributed_optimizer) {
    to.differences.emplace_back("the precision-aware optimizer without the distributed one");
  }
  if (!optimizer.remainders && optimizer.main_params == 4 && optimizer.host_fraction == 0) {
    to.notes.emplace_back(
        "from Transformer Engine 2.1 on the optimizer keeps of fp32 weights what bf16 ones lack, 2 "
        "bytes a parameter less (memory.store_param_remainders)");
  }
}

// What of activations is kept in fewer bits, or on the host.
void add_kept_activations(const LayerContext& context, MegatronFlags& to) {
  if (context.offloaded.any()) {
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

// What of a mixture of experts' exchange has a flag. Without one tokens are gathered, not
// exchanged.
void add_exchange(const Scenario& scenario, const LayerContext& context, MegatronFlags& to) {
  if (!scenario.modelled->model.experts) return;
  to.flags.push_back(
      fmt::format("--moe-token-dispatcher-type {}", context.flex_dispatcher ? "flex" : "alltoall"));
  if (const auto& cost = scenario.roofline) {
    const bool held = cost->software.routing > Seconds(0);  // the host waits: DeepEP
    if (context.flex_dispatcher && !held) {
      to.flags.emplace_back("--moe-flex-dispatcher-backend hybridep");
    }
    if (cost->software.fullest == 1) to.flags.emplace_back("--moe-router-force-load-balancing");
  }
  if (context.fp8_dispatch) to.flags.emplace_back("--moe-dispatch-fwd-dtype mxfp8");
  if (context.fp8_combine_gradient) to.flags.emplace_back("--moe-combine-bwd-dtype mxfp8");
}

// What collectives run beside. Megatron-FSDP overlaps what it does in every microbatch.
void add_overlap(const Scenario& scenario, MegatronFlags& to) {
  const ParameterState& state = scenario.modelled->state;
  const Overlap overlap = scenario.roofline ? scenario.roofline->overlap : Overlap{};
  if (overlap.tensor) to.flags.emplace_back("--tp-comm-overlap");
  if (overlap.gradient_reduce || state.sharded_gradients) {
    to.flags.emplace_back("--overlap-grad-reduce");
  }
  if (overlap.parameter_gather || state.sharded_weights) {
    to.flags.emplace_back("--overlap-param-gather");
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
  to.notes.emplace_back("CUDA_DEVICE_MAX_CONNECTIONS must not be 1");
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
  if (modelled.model.latent && ring_ranks(context) == 1) {
    to.differences.push_back(fmt::format(
        "latent attention with cp_comm_type {}, which Transformer Engine refuses: p2p and a2a+p2p "
        "have it",
        to_text(context.exchange)));
  }
}

// What only a model is divided by, and what of it is recomputed without passes of its own.
void add_model_sizes(const Scenario& scenario, const LayerContext& context, int devices,
                     MegatronFlags& to) {
  const Modelled& modelled = *scenario.modelled;
  to.flags =
      joined(std::move(to.flags), model_flags(modelled.model, context.tensor, context.seq_length));
  if (modelled.model.post_norms) {
    to.differences.emplace_back("norms after attention and MLP, for which it has no flag");
  }
  if (context.sequence_parallel) to.flags.emplace_back("--sequence-parallel");
  if (context.expert > 1) {
    to.flags.push_back(fmt::format("--expert-model-parallel-size {}", context.expert));
  }
  if (modelled.model.experts && context.expert_tensor != context.tensor) {
    to.flags.push_back(fmt::format("--expert-tensor-parallel-size {}", context.expert_tensor));
  }
  add_sharding(modelled.state, devices, to);
  add_optimizer_state(modelled.state, to);
  add_kept_activations(context, to);
  to.flags.push_back(fmt::format("--seq-length {}", context.seq_length));
  if (context.recompute.of_modules()) add_recomputed_modules(context.recompute, to);
  add_exchange(scenario, context, to);
  add_context_exchange(modelled, context, to);
}

}  // namespace

void add_setting(const Case& made, bool validates, MegatronFlags& to) {
  const Scenario& scenario = *made.scenario;
  add_model_sizes(scenario, *made.context, made.problem.shape.devices, to);
  add_precision(scenario, *made.context, validates, to);
  add_overlap(scenario, to);
}

}  // namespace pipesim
