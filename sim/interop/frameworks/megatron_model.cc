#include "sim/interop/frameworks/megatron_model.h"

#include <algorithm>
#include <fmt/format.h>

#include "sim/core/letters.h"
#include "sim/interop/frameworks/encoder_decoder.h"
#include "sim/interop/frameworks/layer_specs.h"
#include "sim/interop/frameworks/megatron_layers.h"
#include "sim/interop/frameworks/number_list.h"
#include "sim/interop/frameworks/sparse_attention.h"

namespace pipesim {
namespace {

void put_attention(Settings& settings, long heads, long tensor, Draft& draft) {
  Section& model = draft.model;
  put(model, "num_attention_heads", heads);
  // num_query_groups counts with --group-query-attention; files name it alone.
  const auto grouped = settings.flag({"group_query_attention"});
  const auto groups = settings.number(
      {"num_query_groups", "n_head_kv", "num_key_value_heads", "num_attention_heads_kv"}, 1);
  const bool one = settings.text({"attention_head_type"}) == "multiquery";  // Pai-Megatron-Patch's
  if (groups && grouped.value_or(true)) put(model, "num_query_groups", *groups);
  if (!groups && one) {
    // Every tensor rank has the keys whole.
    put(model, "num_query_groups", tensor);
    if (tensor > 1) {
      draft.notes.push_back(
          fmt::format("{} groups of query heads: a copy of one's keys on every "
                      "tensor rank",
                      tensor));
    }
  }
  if (const auto channels = settings.number({"kv_channels"}, 1)) {
    put(model, "kv_channels", *channels);
  }
  if (settings.is_set({"add_qkv_bias", "qkv_bias"})) put_flag(model, "add_qkv_bias", true);
  // Latent attention normalizes what it compresses, which a scenario does not say apart.
  const bool latent = settings.is_set({"multi_latent_attention"});
  if (settings.is_set({"qk_l2_norm"})) {
    put(model, "qk_layernorm", "without_weights");
  } else if (settings.is_set({"qk_layernorm"}) && !latent) {
    put_flag(model, "qk_layernorm", true);
  }
  if (settings.text({"softmax_type"}) == "learnable") put_flag(model, "attention_sinks", true);
  if (const auto part = settings.real({"rotary_percent"}); part < 1 && part > 0) {
    put(model, "rotary_percent", fmt::format("{:g}", *part));
  }
  if (settings.is_set({"attention_output_gate"})) put_flag(model, "attention_output_gate", true);
}

void put_latent(Settings& settings, Draft& draft) {
  const bool latent = settings.is_set({"multi_latent_attention"});
  const long queries = settings.number({"q_lora_rank"}).value_or(0);
  if (latent) put(draft.model, "mla.q_lora_rank", queries);
  // Hugging Face's names beside Megatron-LM's.
  for (const auto& [name, other] : {std::pair("kv_lora_rank", "kv_lora_rank"),
                                    {"qk_head_dim", "qk_nope_head_dim"},
                                    {"qk_pos_emb_head_dim", "qk_rope_head_dim"},
                                    {"v_head_dim", "v_head_dim"}}) {
    const auto stated = settings.number({name, other}, 1);
    const long value = stated ? *stated : settings.number_or_usual(name);
    if (latent) put(draft.model, std::string("mla.") + name, value);
  }
}

bool is_gated(Settings& settings) {
  const bool swiglu = settings.is_set({"swiglu"});
  const bool gated = settings.is_set({"gated_linear_unit"});
  const bool geglu = settings.is_set({"quick_geglu", "geglu", "gelu_tanh"});  // MindSpeed's two
  const auto named =
      settings.text({"activation", "activation_func", "glu_activation"}).value_or("");
  return swiglu || gated || geglu || named.find("glu") != std::string::npos;
}

// FlagScale's width of a gated MLP, in steps of its own.
std::optional<long> ffn_in_steps(Settings& settings, long hidden) {
  const auto step = settings.number({"multiple_of"}, 1);
  const double factor = settings.real({"hidden_dim_multiplier"}).value_or(1);
  constexpr double kMostTimes = 1024;
  if (!step || factor <= 0 || factor > kMostTimes) return std::nullopt;
  const long usual = hidden * 4 * 2 / 3;
  const auto width = static_cast<long>(static_cast<double>(usual) * factor);
  return (width + *step - 1) / *step * *step;
}

// Without a size: 4 h, of a gated MLP 2/3 of that in steps of 64, but in Megatron-LLM.
long ffn_size(Settings& settings, long hidden, bool gated) {
  const auto in_steps = ffn_in_steps(settings, hidden);
  if (const auto ffn = settings.number({"ffn_hidden_size", "intermediate_size"}, 1)) return *ffn;
  if (gated && in_steps) return *in_steps;
  const bool scaled = gated && !is_of_megatron_llm(settings);
  return scaled ? hidden * 4 * 2 / 3 / 64 * 64 : 4 * hidden;
}

// Pai-Megatron-Patch has one flag for the MLP's biases and one for attention's output. Megatron-LLM
// has none unless it is asked.
void put_biases(Settings& settings, Section& model) {
  const bool asked = settings.is_set({"use_bias"}) || !is_of_megatron_llm(settings);
  const bool none = settings.is_set({"disable_bias_linear"}) || !asked ||
                    !settings.flag({"add_bias_linear", "bias"}).value_or(true);
  const bool no_mlp = settings.is_set({"disable_bias_linear_fc"});
  const bool no_output = settings.is_set({"disable_bias_attn_fc"});
  put_flag(model, "add_bias_linear", !none && !no_mlp);
  if (none || !no_mlp) return;
  put_flag(model, no_output ? "add_qkv_bias" : "add_attention_bias", true);
}

void put_norms(Settings& settings, Draft& draft) {
  const std::string norm = small_letters(settings.text({"normalization"}).value_or("LayerNorm"));
  // Megatron-LLM's flag.
  const bool rms = settings.is_set({"use_rms_norm"}) || norm.find("rms") != std::string::npos;
  if (!rms && norm.find("layer") == std::string::npos) {
    not_understood(draft, "normalization", fmt::format("normalization {}", norm));
  }
  put(draft.model, "normalization", rms ? "RMSNorm" : "LayerNorm");
  if (settings.is_set({"post_norm"})) put_flag(draft.model, "post_norms", true);  // MindSpeed's
}

void put_positions(Settings& settings, MegatronSizes& sizes, Draft& draft) {
  const bool rotary = settings.is_set(
      {"use_rotary_position_embeddings", "use_llama2_rotary_position_embeddings", "use_glm_rope"});
  const bool none = settings.is_set({"no_position_embedding"});
  const std::string type = small_letters(settings.text({"position_embedding_type"})
                                             .value_or(rotary ? "rope"
                                                       : none ? "none"
                                                              : "learned_absolute"));
  const auto rows = settings.number({"max_position_embeddings"}, 1);
  static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"learned_absolute", "learned_absolute"},
      {"learned_parameters", "learned_absolute"},
      {"absolute", "learned_absolute"},
      {"none", "none"},
      {"relative", "relative"},
      {"alibi", "none"},
      {"rope", "rope"},
      {"rotary", "rope"},
      {"mrope", "rope"},
      {"yarn", "rope"}};
  const auto* const found = std::ranges::find(kTypes, type, [](const auto& p) { return p.first; });
  if (found == std::end(kTypes)) {
    not_understood(draft, "position_embedding_type",
                   fmt::format("position_embedding_type {}", type));
  }
  const std::string_view ours = found == std::end(kTypes) ? "rope" : found->second;
  put(draft.model, "position_embedding_type", ours);
  sizes.learned_positions = ours == "learned_absolute";
  if (!sizes.learned_positions) return;
  if (rows) {
    put(draft.model, "max_position_embeddings", *rows);
  } else {
    draft.missing.emplace_back("max_position_embeddings=N");
  }
}

// A setting of BERT's head that is no framework's default, or Megatron-LM's program.
void put_bert(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  if (sizes.encoder_layers > 0) return;
  const Setting* head = settings.find({"bert_binary_head", "bert_no_binary_head"});
  const auto program = settings.text({"program"}).value_or("");
  const bool named = program.find("pretrain_bert") != std::string::npos;
  // By default only pretrain_bert.py takes word pieces, which have no merges.
  const bool pieces = program.find("gpt") == std::string::npos && settings.has("vocab_file") &&
                      !settings.has("merge_file") && !settings.has("tokenizer_type") &&
                      !settings.has("tokenizer_model") && !settings.has("vocab_extra_ids");
  if (!named && !pieces && (head == nullptr || head->usual)) return;
  put_flag(draft.model, "bidirectional_attention", true);
  draft.not_modelled.emplace_back(
      "BERT's head: a matrix of the hidden size before the output, and the pooler");
}

bool is_untied(Settings& settings) {
  return settings.is_set({"untie_embeddings_and_output_weights", "no_tie_embed_logits"}) ||
         !settings
              .flag({"share_embeddings_and_output_weights", "share_decoder_tokens_head_embeddings"})
              .value_or(true);
}

void put_vocabulary(Settings& settings, const MegatronSizes& sizes, Draft& draft) {
  constexpr long kStep = 128;
  const auto padded = settings.number({"padded_vocab_size", "pad_vocab_size_to"}, 1);
  const auto size = settings.number({"vocab_size", "override_vocab_size"}, 1);
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

bool is_of_megatron_llm(const Settings& settings) {
  return settings.has("use_rms_norm") || settings.has("no_tie_embed_logits");
}

void put_model(Settings& settings, MegatronSizes& sizes, Draft& draft) {
  rename_compressed_attention(settings);
  // Sizes that are asked for stand as 1, so that the rest is asked for as well.
  const auto size = [&settings](const char* name) {
    const auto value = settings.number({name}, 1);
    return !value && settings.asks(name) ? std::optional(1L) : value;
  };
  std::string pattern = hybrid_pattern(settings, sizes, draft);
  const LayerSpec spec = layer_spec(settings, draft);
  sizes.mixer = spec.mixer;
  auto layers = size("num_layers");
  if (encodes_and_decodes(settings)) layers = put_encoder_decoder(settings, sizes, draft);
  if (pattern.empty() && layers) pattern = spec_pattern(spec, *layers, sizes);
  if (!pattern.empty()) layers = static_cast<long>(pattern.size());
  const auto hidden = size("hidden_size");
  const auto heads = size("num_attention_heads");
  if (!layers || !hidden || !heads) return;
  sizes.layers = *layers;
  sizes.idle_layers = numbers_of(settings.text({"noop_layers"}).value_or(""));
  const long working = *layers - static_cast<long>(sizes.idle_layers.size());
  if (working < 1) {
    not_understood(draft, "noop_layers", "noop_layers: no layer is left");
    return;
  }
  put(draft.model, "num_layers", working);
  put(draft.model, "hidden_size", *hidden);
  const bool gated = is_gated(settings);
  const long ffn = ffn_size(settings, *hidden, gated);
  put(draft.model, "ffn_hidden_size", ffn);
  if (gated) put_flag(draft.model, "gated_linear_unit", true);
  put_attention(settings, *heads, sizes.tensor, draft);
  if (spec.output_gate) put_flag(draft.model, "attention_output_gate", true);
  put_bert(settings, sizes, draft);
  put_vocabulary(settings, sizes, draft);
  put_norms(settings, draft);
  put_positions(settings, sizes, draft);
  put_flag(draft.model, "untie_embeddings_and_output_weights", is_untied(settings));
  put_biases(settings, draft.model);
  if (const auto modules = settings.number({"mtp_num_layers"}); modules > 0) {
    put(draft.model, "mtp_num_layers", *modules);
  }
  put_layer_kinds(settings, sizes, *hidden, pattern, draft);
  put_residual_streams(settings, draft);
  put_experts(settings, working, ffn, sizes, draft);
  put_latent(settings, draft);
}

}  // namespace pipesim
