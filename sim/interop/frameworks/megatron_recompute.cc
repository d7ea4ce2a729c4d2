#include "sim/interop/frameworks/megatron_recompute.h"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>

namespace pipesim {
namespace {

// The stages that share a number of layers: with MindSpeed's enable_recompute_layers_per_pp_rank
// the chunks of a rank, else one stage.
long stages_counted(Settings& settings, const MegatronSizes& sizes) {
  return settings.is_set({"enable_recompute_layers_per_pp_rank"}) ? sizes.chunks : 1;
}

// One stage that encodes and decodes recomputes the first layers of either part: all or none here.
bool put_first_of_both(const MegatronSizes& sizes, long layers, Draft& draft) {
  const long encoder = sizes.encoder_layers;
  if (layers < std::max(encoder, sizes.layers - encoder)) {
    not_understood(
        draft, "recompute_num_layers",
        fmt::format("recompute_num_layers {} of the encoder and of the decoder", layers));
  }
  draft.recompute = "full";
  return true;
}

// Recomputes the first layers of each stage. The chunks of a rank take a layer of its number each
// in turn. True if it covers all layers.
bool put_first_layers(Settings& settings, const MegatronSizes& sizes, long layers, Draft& draft) {
  if (sizes.encoder_layers > 0 && sizes.pipeline == 1 && layers > 0) {
    return put_first_of_both(sizes, layers, draft);
  }
  const long stages = stages_counted(settings, sizes);
  const bool of_rank = stages > 1;
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
  // DeepSpeed's, of which nothing is left on one tensor rank.
  if (settings.is_set({"partition_activations"}) && sizes.tensor > 1) {
    not_understood(draft, "partition_activations",
                   "partition_activations: tensor ranks keep a part each of a layer's input");
  }
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

// Modules by name, and how many layers of `stages` they are made again in; 0: all.
struct RecomputedParts {
  std::string modules;
  long layers = 0;
  long stages = 1;
};

// Modules that MindSpeed recomputes by a setting each, in no layer without it or where 0 are asked
// for. Stops where these differ in layers.
RecomputedParts recomputed_parts(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  struct Part {
    const char* setting;
    const char* layers;
    std::string_view modules;
  };
  RecomputedParts parts;
  parts.stages = stages_counted(settings, sizes);
  const long stages = sizes.pipeline * sizes.chunks / parts.stages;
  static constexpr Part kParts[] = {
      {"recompute_activation_function", "recompute_activation_function_num_layers",
       "mlp_act, moe_act"},
      {"recompute_norm", "recompute_norm_num_layers", "layernorm"},
      {"recompute_mla_up_proj", "recompute_mla_up_proj_num_layers", "mla_up_proj"}};
  for (const Part& part : kParts) {
    const auto given = settings.number({part.layers});
    if (!settings.is_set({part.setting}) || given == 0) continue;
    const bool some = given && *given * sizes.parts * stages < sizes.layers;
    const long layers = some ? *given * sizes.parts : 0;
    if (!parts.modules.empty() && layers != parts.layers) {
      not_understood(draft, part.layers,
                     fmt::format("{} {}, other layers than its modules before it", part.setting,
                                 given.value_or(0)));
    }
    parts.modules += fmt::format("{}{}", parts.modules.empty() ? "" : ", ", part.modules);
    parts.layers = layers;
  }
  return parts;
}

// MindSpeed's: rows go to the experts again, and activations are made again. On its highest level
// all of the experts is, or beside overlapped blocks their first product is on the host.
std::string zero_memory_parts(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  const std::string level = settings.text({"moe_zero_memory"}).value_or("disable");
  const auto layers = settings.number({"moe_zero_memory_num_layers"});
  const bool overlapped = settings.is_set({"moe_fb_overlap"});
  if (level == "disable") return "";
  if (overlapped) return "moe_dispatch, moe_act";
  if (level == "level0") return "moe_dispatch, moe_act, mlp_act";
  if (layers && *layers * sizes.parts * sizes.pipeline < sizes.layers) {
    not_understood(draft, "moe_zero_memory_num_layers",
                   fmt::format("moe_zero_memory_num_layers {}, a part of the layers", *layers));
  }
  return "moe";
}

// These modules alone.
void put_modules(const RecomputedParts& parts, Draft& draft) {
  draft.recompute = "[" + parts.modules + "]";
  if (parts.layers == 0) return;
  if (parts.layers % parts.stages != 0) {
    not_understood(draft, "recompute_activation_function_num_layers",
                   fmt::format("{} layers of which {} are recomputed, in {} stages of a rank",
                               parts.layers, parts.modules, parts.stages));
  }
  draft.recompute = fmt::format("{{granularity: {}, method: block, num_layers: {}}}",
                                draft.recompute, std::max(1L, parts.layers / parts.stages));
}

// These modules, in layers that are not recomputed whole.
void put_recomputed_parts(Settings& settings, const MegatronSizes& sizes, bool whole,
                          Draft& draft) {
  RecomputedParts parts = recomputed_parts(settings, sizes, draft);
  const std::string experts = zero_memory_parts(settings, sizes, draft);
  const bool apart = parts.layers > 0 && !experts.empty();
  if (!parts.modules.empty() && !experts.empty()) parts.modules += ", ";
  parts.modules += experts;
  if (parts.modules.empty()) return;
  const bool by_block = draft.recompute.starts_with("{granularity: full, method: block");
  if (draft.recompute.empty() && !apart) {
    put_modules(parts, draft);
  } else if (by_block && !whole && parts.layers == 0) {
    draft.recompute.pop_back();
    draft.recompute += fmt::format(", others: [{}]}}", parts.modules);
  } else if (draft.recompute.starts_with('[') && parts.layers == 0) {
    draft.recompute.pop_back();
    draft.recompute += fmt::format(", {}]", parts.modules);
  } else if (!whole) {
    not_understood(
        draft, "recompute_num_layers",
        fmt::format("recompute_num_layers: {} recomputed in the other layers", parts.modules));
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

// Before Megatron-LM had granularities, a method alone recomputed whole layers.
bool names_a_method_alone(Settings& settings) {
  const bool later =
      settings.has("recompute_granularity") || settings.has("activations_checkpoint_granularity");
  return !later && settings.text({"activations_checkpoint_method"}).has_value();
}

}  // namespace

void put_recompute(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  const bool activations = settings.is_set({"recompute_activations"});
  const bool set = settings.is_set(
      {"checkpoint_activations", "enable_gradient_checkpointing", "gradient_checkpointing"});
  const bool whole = set || names_a_method_alone(settings);
  const bool experts = settings.is_set({"moe_layer_recompute"});  // beside the other modules
  const auto granularity =
      settings.text({"recompute_granularity", "activations_checkpoint_granularity"})
          .value_or(whole                    ? "full"
                    : activations || experts ? "selective"
                                             : "");
  const auto named = settings.text({"recompute_modules"}).value_or("core_attn");
  const bool apart = experts && named.find("moe ") == std::string::npos && !named.ends_with("moe");
  const std::string modules = named + (apart ? " moe" : "");
  (void)settings.find({"enable_recompute_layers_per_pp_rank"});
  // Beside MindSpeed's swap_attention the first so many layers are recomputed whole.
  const long layers = settings.is_set({"swap_attention"})
                          ? settings.number({"recompute_num_layers"}).value_or(0)
                          : 0;
  if (granularity == "none") {
    draft.recompute.clear();  // ms-swift's
  } else if (granularity == "full") {
    const bool all = put_full_recompute(settings, sizes, draft);
    put_recomputed_parts(settings, sizes, all, draft);
  } else if (granularity.empty() && layers > 0) {
    const bool all = put_first_layers(settings, sizes, layers * sizes.parts, draft);
    put_recomputed_parts(settings, sizes, all, draft);
  } else if (granularity == "selective") {
    draft.recompute = list_of(modules);
    put_recomputed_parts(settings, sizes, false, draft);
  } else if (granularity.empty()) {
    put_recomputed_parts(settings, sizes, false, draft);
  } else {
    not_understood(draft, "recompute_granularity",
                   fmt::format("recompute_granularity {}", granularity));
  }
  put_recompute_in_advance(settings, sizes, draft);
}

}  // namespace pipesim
