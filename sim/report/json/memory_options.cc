#include "sim/report/json/memory_options.h"

namespace pipesim {

void add_optimizer_state(const OptimizerState& state, nlohmann::ordered_json& memory) {
  const OptimizerState usual;
  const auto add = [&](const char* name, double OptimizerState::*bytes) {
    if (state.*bytes != usual.*bytes) memory[name] = state.*bytes;
  };
  add("main_params_bytes", &OptimizerState::main_params);
  add("exp_avg_bytes", &OptimizerState::exp_avg);
  add("exp_avg_sq_bytes", &OptimizerState::exp_avg_sq);
  if (!state.swapped) add("optimizer_offload_fraction", &OptimizerState::host_fraction);
  if (state.swapped) memory["swap_optimizer"] = true;
  if (state.remainders) memory["store_param_remainders"] = true;
  if (state.reads_16_bit_gradients) memory["main_grads_bytes"] = 2;
  if (state.overlaps_host) memory["overlap_cpu_optimizer_d2h_h2d"] = true;
}

void add_kept_activations(const LayerContext& context, nlohmann::ordered_json& memory) {
  if (context.fp8_activation_input) memory["activation_func_fp8_input_store"] = true;
  if (context.attention_output_bits > 0) {
    memory["attention_output_bits"] = context.attention_output_bits;
  }
  if (context.offloaded.any()) memory["offload_modules"] = to_text(context.offloaded, "+");
}

}  // namespace pipesim
