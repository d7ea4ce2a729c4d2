#include "sim/interop/frameworks/megatron_model.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace pipesim {
namespace {

// [a,b]*n and lists in brackets, joined by '+'.
class ListExpression {
 public:
  explicit ListExpression(std::string_view text) : text_(text) {}

  // False where the text is no such expression, or too long.
  bool read(std::vector<int>& to) { return sum(to, 0) && (skip(), at_ == text_.size()); }

 private:
  static constexpr size_t kMost = 1 << 16;
  static constexpr int kDepth = 16;

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '"' || text_[at_] == '\'')) {
      ++at_;
    }
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool number(int& value) {
    skip();
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    at_ = static_cast<size_t>(end - text_.data());
    return error == std::errc() && value >= 0;
  }
  bool sum(std::vector<int>& to, int depth) {
    if (depth > kDepth || !product(to, depth)) return false;
    while (take('+')) {
      if (!product(to, depth)) return false;
    }
    return true;
  }
  bool product(std::vector<int>& to, int depth) {
    std::vector<int> values;
    if (take('(')) {
      if (!sum(values, depth + 1) || !take(')')) return false;
    } else if (take('[')) {
      int value = 0;
      while (number(value)) {
        values.push_back(value);
        if (!take(',')) break;
      }
      if (!take(']')) return false;
    } else {
      return false;
    }
    int times = 1;
    if (take('*') && !number(times)) return false;
    if (values.size() * static_cast<size_t>(times) + to.size() > kMost) return false;
    for (int i = 0; i < times; ++i) to.insert(to.end(), values.begin(), values.end());
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

void put_attention(Settings& settings, long heads, Draft& draft) {
  Section& model = draft.model;
  put(model, "num_attention_heads", heads);
  // num_query_groups counts with --group-query-attention; files name it alone.
  const auto grouped = settings.flag({"group_query_attention"});
  const auto groups = settings.number({"num_query_groups"}, 1);
  if (groups && grouped.value_or(true)) put(model, "num_query_groups", *groups);
  if (const auto channels = settings.number({"kv_channels"}, 1)) {
    put(model, "kv_channels", *channels);
  }
  if (settings.is_set({"add_qkv_bias", "qkv_bias"})) put_flag(model, "add_qkv_bias", true);
  if (settings.is_set({"qk_layernorm"})) put_flag(model, "qk_layernorm", true);
}

void put_latent(Settings& settings, Draft& draft) {
  struct Size {
    const char* name;
    long usual;
  };
  constexpr Size kSizes[] = {{"q_lora_rank", 0},
                             {"kv_lora_rank", 32},
                             {"qk_head_dim", 128},
                             {"qk_pos_emb_head_dim", 64},
                             {"v_head_dim", 128}};
  const bool latent = settings.is_set({"multi_latent_attention"});
  for (const Size& size : kSizes) {
    const long value = settings.number({size.name}).value_or(size.usual);
    if (latent) put(draft.model, std::string("mla.") + size.name, value);
  }
}

// Layers with experts stand behind dense ones, as far as a scenario says it.
void put_expert_layers(Settings& settings, long layers, Draft& draft) {
  const auto text = settings.text({"moe_layer_freq"}).value_or("1");
  std::vector<int> frequencies = frequencies_of(text, layers);
  // A file's list of plain numbers.
  if (frequencies.empty()) {
    std::string list = "[" + text + "]";
    std::ranges::replace(list, ' ', ',');
    frequencies = frequencies_of(list, layers);
  }
  const auto first = std::ranges::find(frequencies, 1);
  const auto dense = first - frequencies.begin();
  const bool behind = std::all_of(first, frequencies.end(), [](int each) { return each == 1; });
  if (frequencies.empty() || first == frequencies.end() || !behind) {
    not_understood(draft, "moe_layer_freq",
                   fmt::format("moe_layer_freq {}: experts stand in all layers behind the first "
                               "dense ones",
                               text));
    return;
  }
  if (dense > 0) put(draft.model, "moe.first_dense_layers", dense);
}

void put_experts(Settings& settings, long ffn, MegatronSizes& sizes, Draft& draft) {
  const auto experts = settings.number({"num_experts", "num_moe_experts"}, 1);
  const long topk = settings.number({"moe_router_topk"}, 1).value_or(2);
  const long size = settings.number({"moe_ffn_hidden_size"}, 1).value_or(ffn);
  const auto shared = settings.number({"moe_shared_expert_intermediate_size"});
  const bool bias = settings.is_set({"moe_router_enable_expert_bias"});
  if (!experts) return;
  sizes.experts = true;
  put(draft.model, "moe.num_experts", *experts);
  put(draft.model, "moe.router_topk", topk);
  put(draft.model, "moe.ffn_hidden_size", size);
  if (shared && *shared % size == 0) {
    put(draft.model, "moe.shared_experts", *shared / size);
  } else if (shared) {
    not_understood(draft, "moe_shared_expert_intermediate_size",
                   fmt::format("moe_shared_expert_intermediate_size {}, no multiple of an expert's "
                               "{}",
                               *shared, size));
  }
  if (bias) put_flag(draft.model, "moe.router_bias", true);
  put_expert_layers(settings, sizes.layers, draft);
}

bool is_gated(Settings& settings) {
  const bool swiglu = settings.is_set({"swiglu"});
  const bool gated = settings.is_set({"gated_linear_unit"});
  const bool geglu = settings.is_set({"quick_geglu"});
  const auto named = settings.text({"activation", "activation_func"}).value_or("");
  return swiglu || gated || geglu || named.find("glu") != std::string::npos;
}

// Without a size: 4 h, of a gated MLP 2/3 of that in steps of 64.
long ffn_size(Settings& settings, long hidden, bool gated) {
  if (const auto ffn = settings.number({"ffn_hidden_size"}, 1)) return *ffn;
  return gated ? hidden * 4 * 2 / 3 / 64 * 64 : 4 * hidden;
}

void put_norms(Settings& settings, Draft& draft) {
  std::string norm = settings.text({"normalization"}).value_or("LayerNorm");
  std::ranges::transform(norm, norm.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool rms = norm.find("rms") != std::string::npos;
  if (!rms && norm.find("layer") == std::string::npos) {
    not_understood(draft, "normalization", fmt::format("normalization {}", norm));
  }
  put(draft.model, "normalization", rms ? "RMSNorm" : "LayerNorm");
}

void put_positions(Settings& settings, Draft& draft) {
  const bool rotary = settings.is_set({"use_rotary_position_embeddings"});
  const bool none = settings.is_set({"no_position_embedding"});
  const auto type = settings.text({"position_embedding_type"})
                        .value_or(rotary || none ? "rope" : "learned_absolute");
  const auto rows = settings.number({"max_position_embeddings"}, 1);
  const bool learned = type == "learned_absolute";
  if (!learned && type != "rope" && type != "mrope" && type != "yarn") {
    not_understood(draft, "position_embedding_type",
                   fmt::format("position_embedding_type {}", type));
  }
  put(draft.model, "position_embedding_type", learned ? "learned_absolute" : "rope");
  if (!learned) return;
  if (rows) {
    put(draft.model, "max_position_embeddings", *rows);
  } else {
    draft.missing.emplace_back("max_position_embeddings=N");
  }
}

void put_vocabulary(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  constexpr long kStep = 128;
  const auto padded = settings.number({"padded_vocab_size"}, 1);
  const auto size = settings.number({"vocab_size"}, 1);
  const long step =
      settings.number({"make_vocab_size_divisible_by"}, 1).value_or(kStep) * sizes.tensor;
  if (padded) {
    put(draft.model, "vocab_size", *padded);
  } else if (size) {
    put(draft.model, "vocab_size", (*size + step - 1) / step * step);
  } else {
    draft.missing.emplace_back("the tokenizer's vocabulary: vocab_size=N");
  }
}

}  // namespace

std::vector<int> frequencies_of(const std::string& text, long length) {
  std::vector<int> values;
  int every = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), every);
  if (error == std::errc() && end == text.data() + text.size() && every > 0) {
    for (long i = 0; i < length; ++i) values.push_back(i % every == 0 ? 1 : 0);
    return values;
  }
  if (!ListExpression(text).read(values)) return {};
  return std::cmp_equal(values.size(), length) ? values : std::vector<int>{};
}

void put_model(Settings& settings, MegatronSizes& sizes, Draft& draft) {
  // Sizes that are asked for stand as 1, so that the rest is asked for as well.
  const auto size = [&settings](const char* name) {
    const auto value = settings.number({name}, 1);
    return !value && settings.asks(name) ? std::optional(1L) : value;
  };
  const auto layers = size("num_layers");
  const auto hidden = size("hidden_size");
  const auto heads = size("num_attention_heads");
  if (!layers || !hidden || !heads) return;
  sizes.layers = *layers;
  put(draft.model, "num_layers", *layers);
  put(draft.model, "hidden_size", *hidden);
  const bool gated = is_gated(settings);
  const long ffn = ffn_size(settings, *hidden, gated);
  put(draft.model, "ffn_hidden_size", ffn);
  if (gated) put_flag(draft.model, "gated_linear_unit", true);
  put_attention(settings, *heads, draft);
  put_vocabulary(settings, sizes, draft);
  put_norms(settings, draft);
  put_positions(settings, draft);
  const bool untied = settings.is_set({"untie_embeddings_and_output_weights"}) ||
                      !settings.flag({"share_embeddings_and_output_weights"}).value_or(true);
  put_flag(draft.model, "untie_embeddings_and_output_weights", untied);
  const bool bias = !settings.is_set({"disable_bias_linear"}) &&
                    settings.flag({"add_bias_linear", "bias"}).value_or(true);
  put_flag(draft.model, "add_bias_linear", bias);
  if (const auto modules = settings.number({"mtp_num_layers"}); modules > 0) {
    put(draft.model, "mtp_num_layers", *modules);
  }
  put_experts(settings, ffn, sizes, draft);
  put_latent(settings, draft);
}

}  // namespace pipesim
