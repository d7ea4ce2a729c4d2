// Settings of Primus that Megatron-LM has by other names.
#include <algorithm>

#include "sim/core/letters.h"
#include "sim/interop/frameworks/settings.h"

namespace pipesim {
namespace {

constexpr double kHalf = 0.5;

// Attention sinks, and the sliding window of every second layer.
void rename_sinks(Settings& settings) {
  const long window = settings.number({"sink_sliding_window"}).value_or(0);
  const bool alternates = settings.flag({"sink_window_even_layers_only"}).value_or(true);
  if (!settings.is_set({"use_sink_attention"})) return;
  const Location where = settings.place("use_sink_attention");
  settings.add({"softmax_type", {"learnable"}, where});
  if (window == 0) return;
  settings.add({"window_size", {std::to_string(window - 1), "0"}, where});
  if (alternates) settings.add({"window_attn_skip_freq", {"2"}, where});
}

// Its own hybrid stack: pairs of a mixer and an MLP, of whose mixers a share attends. Up to a half,
// an attending one stands before equal runs of the others.
std::string paired_layers(long layers, double share) {
  const long pairs = layers / 2;
  const auto attending = static_cast<long>(static_cast<double>(pairs) * share);
  const long other = pairs - attending;
  std::string pattern;
  if (share > kHalf) {
    for (long i = other; i < attending; ++i) pattern += "*-";
    for (long i = 0; i < other; ++i) pattern += "*-M-";
    return pattern;
  }
  const long run = attending > 0 ? other / attending : 0;
  for (long i = 0; i < attending; ++i) {
    pattern += "*-";
    for (long j = 0; j < run; ++j) pattern += "M-";
  }
  for (long i = attending * run; i < other; ++i) pattern += "M-";
  return pattern;
}

// Its hybrid stack by the specification's name; false where the settings name another.
bool rename_hybrid_stack(Settings& settings) {
  const std::string spec = settings.seen("spec").value_or("");
  const auto layers = settings.number({"num_layers"}, 2);
  constexpr long kMostLayers = 1 << 16;
  if (spec.find("hybrid_mamba_mla_layer_specs") == std::string::npos) return false;
  if (!layers || *layers > kMostLayers) return false;
  const Location where = settings.place("spec");
  const double share = settings.real({"hybrid_attention_ratio"}).value_or(0);
  if (!(share >= 0 && share <= 1)) return false;
  const bool listed =
      settings.seen("hybrid_override_pattern") || settings.seen("hybrid_layer_pattern");
  (void)settings.find({"model_type", "hybrid_mlp_ratio", "is_hybrid_model"});
  if (!listed) settings.add({"hybrid_layer_pattern", {paired_layers(*layers, share)}, where});
  // The specification says it, whatever the settings do.
  const bool wide = spec.find("mamba_hybrid_stack_spec") != std::string::npos;
  settings.add({"mamba_expand", {wide ? "2" : "1"}, where});
  settings.add({"hybrid_attention_ratio", {"0"}, where});
  settings.add({"is_hybrid_model", {"false"}, where});
  return true;
}

// Its Mamba models: a listed pattern, or Mamba layers alone. Ratios do not say where layers stand,
// so they stop.
void rename_mamba(Settings& settings) {
  if (settings.seen("model_type") != "mamba" || rename_hybrid_stack(settings)) return;
  const bool listed =
      settings.seen("hybrid_override_pattern") || settings.seen("hybrid_layer_pattern");
  const auto layers = settings.number({"num_layers"}, 1);
  if (!listed && (settings.is_set({"is_hybrid_model"}) || !layers)) return;
  if (!listed) {
    constexpr long kMostLayers = 1 << 16;
    const auto letters = static_cast<size_t>(std::min(*layers, kMostLayers));
    settings.add({"hybrid_layer_pattern",
                  {std::string(letters, 'M')},
                  settings.find({"model_type"})->where});
  }
  (void)settings.find({"model_type", "hybrid_attention_ratio", "hybrid_mlp_ratio"});
}

// Kimi K3's attention, latent or delta by layer, its experts' space and its weighed residuals.
void rename_kimi(Settings& settings) {
  if (settings.seen("model_type") != "kimi_k3") return;
  const Location where = settings.find({"model_type"})->where;
  const auto say = [&](const char* name, const std::string& value) {
    settings.add({name, {value}, where});
  };
  say("multi_latent_attention", "true");
  say("experimental_attention_variant", "kda");
  say("position_embedding_type", "none");
  if (settings.is_set({"mla_use_output_gate"})) say("attention_output_gate", "true");
  if (const auto size = settings.text({"routed_expert_hidden_size"})) say("moe_latent_size", *size);
  const bool slow = settings.seen("use_kimi_k3_attention_backend") == "eager";
  if (!slow) (void)settings.find({"use_kimi_k3_attention_backend"});
}

// LFM2's short convolutions, by layer. They are as wide as the model.
void rename_short_convolutions(Settings& settings) {
  const Setting* layers = settings.find({"lfm_layer_types"});
  const auto heads = settings.number({"num_attention_heads"}, 1);
  const auto hidden = settings.number({"hidden_size"}, 1);
  if (layers == nullptr || !heads || !hidden) return;
  const Location where = layers->where;
  std::string listed;
  for (const std::string& kind : layers->values) {
    listed += (listed.empty() ? "[" : ",") + std::string(kind == "conv" ? "1" : "0");
  }
  const auto say = [&](const char* name, const std::string& value) {
    settings.add({name, {value}, where});
  };
  say("experimental_attention_variant", "short_conv");
  say("linear_attention_freq", listed + "]");
  for (const char* name : {"linear_num_value_heads", "linear_num_key_heads"}) {
    say(name, std::to_string(*heads));
  }
  for (const char* name : {"linear_value_head_dim", "linear_key_head_dim"}) {
    say(name, std::to_string(*hidden / *heads));
  }
  if (const auto kernel = settings.text({"conv_L_cache"})) say("linear_conv_kernel_dim", *kernel);
}

// Its own DeepEP, which the second stage without waits for the host switches on.
void rename_dispatcher(Settings& settings) {
  const auto stage = settings.seen("turbo_sync_free_moe_stage").value_or("0");
  const bool asked = small_letters(settings.seen("use_turbo_deepep").value_or("")) == "true" ||
                     stage == "2" || stage == "3";
  if (!asked || small_letters(settings.seen("enable_primus_turbo").value_or("")) != "true") return;
  settings.add({"moe_enable_deepep", {"true"}, settings.find({"enable_primus_turbo"})->where});
}

// Stages of training that its trainers name themselves.
void take_stage(Settings& settings) {
  const std::string stage = settings.seen("stage").value_or("");
  if (stage.find("pretrain") != std::string::npos) (void)settings.find({"stage"});
}

}  // namespace

void rename_primus_settings(Settings& settings) {
  rename_dispatcher(settings);
  take_stage(settings);
  rename_sinks(settings);
  rename_mamba(settings);
  rename_kimi(settings);
  rename_short_convolutions(settings);
}

}  // namespace pipesim
