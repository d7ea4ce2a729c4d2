// Settings of Primus that Megatron-LM has by other names.
#include <algorithm>

#include "sim/core/letters.h"
#include "sim/interop/frameworks/settings.h"

namespace pipesim {
namespace {

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

// Its Mamba models: a listed pattern, or Mamba layers alone. Ratios do not say where layers stand,
// so they stop.
void rename_mamba(Settings& settings) {
  if (settings.seen("model_type") != "mamba") return;
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
}

}  // namespace pipesim
