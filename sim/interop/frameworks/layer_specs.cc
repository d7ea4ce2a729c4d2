#include "sim/interop/frameworks/layer_specs.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace pipesim {
namespace {

struct NamedSpec {
  std::string_view name;  // the module's, without its path
  LayerSpec says = {};
};

// Megatron-Core's, MindSpeed-LLM's, and the names that Megatron-LM has beside them.
const NamedSpec* find_spec(std::string_view name) {
  static const NamedSpec kSpecs[] = {{"local"},
                                     {"gpt_layer_specs"},
                                     {"hybrid_layer_specs", {.mamba = true}},
                                     {"mamba_layer_specs", {.mamba = true}},
                                     {"hybrid_mamba_mla_layer_specs"},
                                     {"qwen2_moe_spec"},
                                     {"qwen3_spec"},
                                     {"qwen3_next_spec", {.output_gate = true}},
                                     {"deepseek_spec"},
                                     {"deepseek4_spec"},
                                     {"gemma2_spec"},
                                     {"bailing_spec"},
                                     {"phi35_moe_spec"},
                                     {"plm_spec"},
                                     {"minimax_spec"},
                                     {"grok_spec"},
                                     {"hunyuan_spec"},
                                     {"mamba_spec", {.mamba = true}},
                                     {"longcat_spec", {.shortcut_experts = true}}};
  const auto* const found = std::ranges::find(kSpecs, name, &NamedSpec::name);
  return found == std::end(kSpecs) ? nullptr : found;
}

// A place in a module, "[a.b.c, d]" or "a.b.c d": c and d.
std::pair<std::string, std::string> parts_of(std::string text) {
  std::erase_if(text,
                [](char c) { return std::string_view("[]'\"").find(c) != std::string::npos; });
  const size_t end = std::min(text.size(), text.find_first_of(" ,"));
  const std::string path = text.substr(0, end);
  const size_t name = std::min(text.size(), text.find_first_not_of(" ,", end));
  return {path.substr(path.rfind('.') + 1), text.substr(name)};
}

}  // namespace

LayerSpec layer_spec(Settings& settings, Draft& draft) {
  const auto text = settings.text({"spec"});
  const auto program = settings.text({"program"}).value_or("");
  if (!text) return {.mamba = program.find("pretrain_mamba") != std::string::npos};
  const auto [module, object] = parts_of(*text);
  const NamedSpec* found = find_spec(module);
  LayerSpec says = found == nullptr ? LayerSpec{} : found->says;
  // Primus' have Kimi's or gated delta attention in Mamba's place.
  if (object.starts_with("kda_")) says.mixer = "kda";
  if (object.starts_with("gdn_")) says.mixer = "gated_delta";
  if (found != nullptr) return says;
  not_understood(draft, "spec", fmt::format("spec {}", *text));
  return {};
}

std::string spec_pattern(const LayerSpec& spec, long layers, MegatronSizes& sizes) {
  if (spec.mamba) return std::string(layers, 'M');
  std::string letters;
  if (!spec.shortcut_experts) return letters;
  static constexpr std::string_view kLayer = "*-*-E";
  sizes.parts = static_cast<long>(kLayer.size());
  for (long i = 0; i < layers; ++i) letters += kLayer;
  return letters;
}

}  // namespace pipesim
