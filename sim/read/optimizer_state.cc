#include "sim/read/optimizer_state.h"

#include <algorithm>
#include <string>
#include <vector>

namespace pipesim {
namespace {

double bytes_of(const std::string& precision) {
  if (precision == "fp32") return 4;
  return precision == "fp8" ? 1 : 2;
}

void read_dtype(YamlMap& memory, const char* key, const std::vector<std::string>& known,
                double& bytes) {
  if (const auto dtype = memory.find(key)) bytes = bytes_of(dtype->choice(known));
}

void read_gradients(YamlMap& memory, ParameterState& state) {
  static const std::vector<std::string> kKnown{"fp32", "bf16"};
  const auto dtype = memory.find("main_grads_dtype");
  if (!dtype || dtype->choice(kKnown) == "fp32") return;
  if (state.in_fp32()) dtype->fail("gradients are as the weights of precision fp32");
  if (const auto sums = memory.find("accumulate_allreduce_grads_in_fp32"); sums && sums->flag()) {
    dtype->fail("gradients are summed in fp32, as 'accumulate_allreduce_grads_in_fp32' says");
  }
  state.gradients_in_fp32 = false;
  state.optimizer.reads_16_bit_gradients = true;
}

void read_swap(YamlMap& memory, OptimizerState& optimizer) {
  const auto swap = memory.find("swap_optimizer");
  if (!swap || !swap->flag()) return;
  if (optimizer.host_fraction > 0) swap->fail("stands in place of optimizer_offload_fraction");
  optimizer.host_fraction = 1;
  optimizer.swapped = true;
}

}  // namespace

void read_optimizer_state(YamlMap& memory, bool bf16_weights, ParameterState& state) {
  static const std::vector<std::string> kParameters{"fp32", "fp16"};
  static const std::vector<std::string> kMoments{"fp32", "fp16", "bf16", "fp8"};
  OptimizerState& optimizer = state.optimizer;
  const auto copy = memory.find("main_params_dtype");
  const double copied = copy ? bytes_of(copy->choice(kParameters)) : 4;
  if (state.in_fp32() && copied < 4) copy->fail("weights of precision fp32 have no copy");
  if (!state.in_fp32()) optimizer.main_params = copied;
  read_dtype(memory, "exp_avg_dtype", kMoments, optimizer.exp_avg);
  read_dtype(memory, "exp_avg_sq_dtype", kMoments, optimizer.exp_avg_sq);
  read_gradients(memory, state);
  if (const auto fraction = memory.find("optimizer_offload_fraction")) {
    optimizer.host_fraction = fraction->number(0, 1);
  }
  if (const auto overlap = memory.find("overlap_cpu_optimizer_d2h_h2d")) {
    optimizer.overlaps_host = overlap->flag();
    if (optimizer.host_fraction == 0) overlap->fail("needs an optimizer_offload_fraction above 0");
  }
  read_swap(memory, optimizer);
  const auto remainders = memory.find("store_param_remainders");
  if (!remainders || !remainders->flag()) return;
  if (optimizer.main_params < 4 || !bf16_weights) {
    remainders->fail("is of main_params_dtype: fp32 beside weights in bf16");
  }
  if (optimizer.host_fraction > 0) {
    remainders->fail("needs the weights beside it: not with states on the host");
  }
  optimizer.remainders = true;
  optimizer.main_params = 2;
}

void read_kept_activations(YamlMap& memory, LayerContext& context) {
  if (const auto eight = memory.find("activation_func_fp8_input_store")) {
    context.fp8_activation_input = eight->flag();
  }
  if (const auto bits = memory.find("attention_output_bits")) {
    context.attention_output_bits = static_cast<int>(bits->integer(8, 16));
    if (!context.flash_attention) bits->fail("is of flash_attention, which reads it backward");
  }
  const auto modules = memory.find("offload_modules");
  if (!modules) return;
  static const std::vector<std::string> kKnown(kOffloadModules.begin(), kOffloadModules.end());
  for (const YamlValue& each : modules->list()) {
    const auto known = std::ranges::find(kKnown, each.choice(kKnown));
    context.offloaded = context.offloaded | static_cast<OffloadModule>(known - kKnown.begin());
  }
}

}  // namespace pipesim
