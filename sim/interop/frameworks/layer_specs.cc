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
                                     {"hybrid_layer_specs"},
                                     {"mamba_layer_specs"},
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

// A layer a letter: S finds its tokens, T takes those of the layer before.
std::string sparse_letters(std::string letters, long every, long alone, long layers) {
  if (!letters.empty()) {
    // S shares the tokens of the layer before; another letter finds its own.
    for (char& letter : letters) letter = letter == 'S' ? 'T' : 'S';
    return letters;
  }
  for (long i = 0; i < layers; ++i) {
    letters += i < alone || (i - alone + 1) % every == 0 ? 'S' : 'T';
  }
  return letters.find('T') == std::string::npos ? "S" : letters;
}

}  // namespace

LayerSpec layer_spec(Settings& settings, Draft& draft) {
  const auto text = settings.text({"spec"});
  if (!text) return {};
  const auto [module, object] = parts_of(*text);
  // Primus' have Kimi's or gated delta attention in Mamba's place.
  const bool other = object.starts_with("kda_") || object.starts_with("gdn_");
  const NamedSpec* found = find_spec(module);
  if (found != nullptr && !other) return found->says;
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

long computing_experts(Settings& settings, long experts, long topk, Draft& draft) {
  const auto idle = settings.number({"num_zero_experts"});
  if (idle.value_or(0) == 0) return topk;
  const long all = experts + *idle;
  if (topk * experts % all == 0) {
    draft.notes.push_back(fmt::format(
        "{} of {} experts do nothing: under balanced routing {} of a token's {} compute", *idle,
        all, topk * experts / all, topk));
    return topk * experts / all;
  }
  not_understood(
      draft, "num_zero_experts",
      fmt::format("num_zero_experts {}: of a token's {} experts no whole number computes", *idle,
                  topk));
  return topk;
}

void put_sparse_attention(Settings& settings, long layers, Draft& draft) {
  const bool sparse = settings.is_set({"enable_dsa_indexer"});
  const long heads = settings.number({"index_n_heads"}, 1).value_or(64);
  const long size = settings.number({"index_head_dim"}, 1).value_or(128);
  const long topk = settings.number({"index_topk"}, 1).value_or(2048);
  const long every = settings.number({"index_topk_freq"}, 1).value_or(1);
  const long alone = settings.number({"index_skip_topk_offset"}, 0).value_or(2);
  const std::string listed = settings.text({"index_topk_pattern"}).value_or("");
  const bool kernel = settings.is_set({"use_sparse_flash_attn"});
  // Sparse attention in the latent space is what the model counts.
  if (settings.is_set({"enable_mla_absorb"}) && !sparse) {
    not_understood(draft, "enable_mla_absorb", "enable_mla_absorb, without sparse attention");
  }
  if (!sparse) return;
  const std::string letters = sparse_letters(listed, every, alone, layers);
  if (!kernel) {
    not_understood(draft, "enable_dsa_indexer",
                   "enable_dsa_indexer without use_sparse_flash_attn, which attends to all tokens");
  }
  if (std::cmp_not_equal(letters.size(), layers) && letters.size() > 1) {
    not_understood(draft, "index_topk_pattern", fmt::format("index_topk_pattern {}", letters));
    return;
  }
  put(draft.model, "layer_pattern", "\"" + letters + "\"");
  put(draft.model, "sparse_attention.num_heads", heads);
  put(draft.model, "sparse_attention.head_size", size);
  put(draft.model, "sparse_attention.topk", topk);
}

}  // namespace pipesim
