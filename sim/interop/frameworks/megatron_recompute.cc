#include "sim/interop/frameworks/megatron_recompute.h"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>

namespace pipesim {
namespace {

// Recomputes the first layers of each stage. With MindSpeed's enable_recompute_layers_per_pp_rank
// the number is a rank's, which its chunks take a layer each in turn. True if it covers all layers.
bool put_first_layers(Settings& settings, const MegatronSizes& sizes, long layers, Draft& draft) {
  const bool of_rank = settings.is_set({"enable_recompute_layers_per_pp_rank"}) && sizes.chunks > 1;
  const long stages = of_rank ? sizes.chunks : 1;
  const bool whole_stages = of_rank && sizes.layers == sizes.pipeline * sizes.chunks * sizes.parts;
  const long all = sizes.pipeline * sizes.chunks;
  draft.recompute.clear();
  if (layers == 0) return false;
  if (whole_stages) {
    draft.recompute = fmt::format("{{granularity: full, chunks: {}}}",
                                  std::min(sizes.chunks, layers / sizes.parts));
  } else if (layers / sizes.parts < stages) {
    draft.recompute =
        fmt::format("{{granularity: full, chunks: {}, method: block, num_layers: {}}}",
                    layers / sizes.parts, sizes.parts);
  } else if (layers % stages == 0) {
    draft.recompute =
        fmt::format("{{granularity: full, method: block, num_layers: {}}}", layers / stages);
  } else {
    not_understood(draft, "enable_recompute_layers_per_pp_rank",
                   fmt::format("enable_recompute_layers_per_pp_rank, of {} layers in {} stages",
                               layers, stages));
  }
  return layers / stages * all >= sizes.layers;
}

// Whole layers: with `block` the first of each stage, with `uniform` so many from one input. True
// where these are all.
bool put_full_recompute(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  const auto method =
      settings.text({"recompute_method", "activations_checkpoint_method"}).value_or("uniform");
  const long layers =
      sizes.parts * settings
                        .number({"recompute_num_layers", "activations_checkpoint_num_layers",
                                 "checkpoint_num_layers"})
                        .value_or(1);
  draft.recompute = "full";
  if (method == "block") {
    return put_first_layers(settings, sizes, layers, draft);
  }
  if (method == "uniform" && layers > 1) {
    draft.recompute = fmt::format("{{granularity: full, method: uniform, num_layers: {}}}", layers);
  }
  if (method != "uniform") {
    not_understood(draft, "recompute_method", fmt::format("recompute_method {}", method));
  }
  return true;
}

// MindSpeed's recomputation that does not wait for the gradient, as R here. It takes several chunks
// of each rank.
void put_recompute_in_advance(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  if (!settings.is_set({"recompute_in_advance"})) return;
  if (sizes.chunks == 1 || !draft.recompute.starts_with("{granularity: full")) {
    not_understood(draft, "recompute_in_advance",
                   "recompute_in_advance without chunks of which layers are recomputed by block");
    return;
  }
  draft.not_modelled.emplace_back(
      "recompute_in_advance: the last stage's layers are recomputed here too");
}

// Modules that MindSpeed recomputes by a setting each; stops where only a part of the layers do.
std::string recomputed_parts(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  struct Part {
    const char* setting;
    const char* layers;
    std::string_view modules;
  };
  std::string modules;
  static constexpr Part kParts[] = {
      {"recompute_activation_function", "recompute_activation_function_num_layers",
       "mlp_act, moe_act"},
      {"recompute_norm", "recompute_norm_num_layers", "layernorm"},
      {"recompute_mla_up_proj", "recompute_mla_up_proj_num_layers", "mla_up_proj"}};
  for (const Part& part : kParts) {
    const auto layers = settings.number({part.layers});
    if (!settings.is_set({part.setting})) continue;
    modules += fmt::format("{}{}", modules.empty() ? "" : ", ", part.modules);
    if (layers && *layers * sizes.parts * sizes.pipeline < sizes.layers) {
      not_understood(draft, part.layers,
                     fmt::format("{} {}, a part of the layers", part.layers, *layers));
    }
  }
  return modules;
}

// These modules, in layers that are not recomputed whole.
void put_recomputed_parts(Settings& settings, const MegatronSizes& sizes, bool whole,
                          Draft& draft) {
  const std::string modules = recomputed_parts(settings, sizes, draft);
  if (modules.empty()) return;
  if (draft.recompute.empty()) {
    draft.recompute = "[" + modules + "]";
  } else if (!whole) {
    not_understood(draft, "recompute_num_layers",
                   fmt::format("recompute_num_layers: {} recomputed in the other layers", modules));
  }
}

// Names of a list in any of its forms, as YAML.
std::string list_of(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return std::string_view("[],'\"").find(c) != std::string_view::npos; },
      ' ');
  std::istringstream words(text);
  std::string names;
  for (std::string word; words >> word;) names += (names.empty() ? "" : ", ") + word;
  return "[" + names + "]";
}

}  // namespace

void put_recompute(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  const bool activations = settings.is_set({"recompute_activations"});
  const bool whole = settings.is_set(
      {"checkpoint_activations", "enable_gradient_checkpointing", "gradient_checkpointing"});
  const auto granularity =
      settings.text({"recompute_granularity", "activations_checkpoint_granularity"})
          .value_or(whole         ? "full"
                    : activations ? "selective"
                                  : "");
  const auto modules = settings.text({"recompute_modules"});
  (void)settings.find({"enable_recompute_layers_per_pp_rank"});
  // Beside MindSpeed's swap_attention the first so many layers are recomputed whole.
  const long layers = settings.is_set({"swap_attention"})
                          ? settings.number({"recompute_num_layers"}).value_or(0)
                          : 0;
  if (granularity == "full") {
    const bool all = put_full_recompute(settings, sizes, draft);
    put_recomputed_parts(settings, sizes, all, draft);
  } else if (granularity.empty() && layers > 0) {
    const bool all = put_first_layers(settings, sizes, layers * sizes.parts, draft);
    put_recomputed_parts(settings, sizes, all, draft);
  } else if (granularity == "selective") {
    draft.recompute = list_of(modules.value_or("core_attn"));
  } else if (granularity.empty()) {
    put_recomputed_parts(settings, sizes, false, draft);
  } else {
    not_understood(draft, "recompute_granularity",
                   fmt::format("recompute_granularity {}", granularity));
  }
  put_recompute_in_advance(settings, sizes, draft);
}

}  // namespace pipesim
