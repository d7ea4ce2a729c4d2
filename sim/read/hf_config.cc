#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <utility>

#include "sim/core/text.h"
#include "sim/read/model.h"

namespace pipesim {
namespace {

// A config.json, in which null stands for a key that is not there.
class HfConfig {
 public:
  explicit HfConfig(const YamlValue& root) : map_(root) {}

  int size(const char* key) { return read(map_.require(key, "a whole number"), 1); }
  int size_or(const char* key, int missing) {
    const auto value = given(key);
    return value ? read(*value, 0) : missing;
  }
  bool flag_or(const char* key, bool missing) {
    const auto value = given(key);
    if (value) refuse_text(*value, "true or false");
    return value ? value->flag() : missing;
  }
  std::optional<YamlValue> given(const char* key) {
    auto value = map_.find(key);
    if (value && value->is_null()) value.reset();
    return value;
  }
  [[nodiscard]] const YamlValue& value() const { return map_.value(); }

 private:
  // YAML reads a quoted number as one; JSON does not.
  static void refuse_text(const YamlValue& value, const char* expected) {
    if (value.node().Tag() == "!") value.fail(fmt::format("expected {}, not a text", expected));
  }
  static int read(const YamlValue& value, long least) {
    refuse_text(value, "a whole number");
    return static_cast<int>(value.integer(least, kLargestSize));
  }
  YamlMap map_;
};

// What the descendants of Llama have in common.
Transformer read_llama(HfConfig& config) {
  Transformer model;
  model.gated_mlp = true;
  model.num_layers = config.size("num_hidden_layers");
  model.hidden_size = config.size("hidden_size");
  model.ffn_hidden_size = config.size("intermediate_size");
  model.vocab_size = config.size("vocab_size");
  model.num_attention_heads = config.size("num_attention_heads");
  model.num_query_groups = config.size_or("num_key_value_heads", model.num_attention_heads);
  model.kv_channels = config.size_or("head_dim", model.hidden_size / model.num_attention_heads);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", false);
  model.linear_bias = config.flag_or("attention_bias", false);
  if (config.flag_or("mlp_bias", model.linear_bias) != model.linear_bias) {
    config.value().fail("biases in only one of attention and MLP are not modelled");
  }
  return model;
}

Transformer read_gpt2(HfConfig& config) {
  Transformer model;
  model.num_layers = config.size("n_layer");
  model.hidden_size = config.size("n_embd");
  model.num_attention_heads = config.size("n_head");
  model.num_query_groups = model.num_attention_heads;
  model.kv_channels = model.hidden_size / model.num_attention_heads;
  model.ffn_hidden_size = config.size_or("n_inner", 4 * model.hidden_size);
  model.vocab_size = config.size("vocab_size");
  model.max_position_embeddings = config.size("n_positions");
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  model.linear_bias = true;
  model.norm = Norm::kLayerNorm;
  model.positions = Positions::kLearned;
  return model;
}

// Attention and MLP side by side are counted as one after the other: the same work.
Transformer read_gpt_neox(HfConfig& config) {
  Transformer model = read_llama(config);
  model.gated_mlp = false;
  model.linear_bias = config.flag_or("attention_bias", true);
  model.norm = Norm::kLayerNorm;
  return model;
}

Transformer read_gemma2(HfConfig& config) {
  Transformer model = read_llama(config);
  model.kv_channels = config.size_or("head_dim", 256);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  model.post_norms = true;
  return model;
}

Transformer read_qwen2(HfConfig& config) {
  Transformer model = read_llama(config);
  model.qkv_bias = true;
  return model;
}

Transformer read_qwen3(HfConfig& config) {
  Transformer model = read_llama(config);
  model.kv_channels = config.size_or("head_dim", 128);
  model.qk_norm = true;
  return model;
}

// Layers that alternate would need a list of kinds.
void refuse_sparse_steps(HfConfig& config, const char* key) {
  const auto step = config.given(key);
  if (step && step->integer(1, kLargestSize) != 1) {
    step->fail("only models with experts in every layer, after the first ones, are modelled");
  }
}

void refuse_dense_layers(HfConfig& config) {
  refuse_sparse_steps(config, "decoder_sparse_step");
  if (const auto dense = config.given("mlp_only_layers"); dense && !dense->list().empty()) {
    dense->fail("only models with experts in every layer, after the first ones, are modelled");
  }
}

// The shared expert is as wide as several; its gate, a number per channel, is not counted.
Transformer read_qwen2_moe(HfConfig& config) {
  Transformer model = read_qwen2(config);
  refuse_dense_layers(config);
  const int width = config.size("moe_intermediate_size");
  const int shared = config.size("shared_expert_intermediate_size");
  if (shared % width != 0) {
    config.given("shared_expert_intermediate_size")
        ->fail(fmt::format("expected a multiple of moe_intermediate_size, {}", width));
  }
  model.experts = Experts{.num_experts = config.size("num_experts"),
                          .experts_per_token = config.size("num_experts_per_tok"),
                          .shared_experts = shared / width,
                          .ffn_hidden_size = width};
  return model;
}

Transformer read_qwen3_moe(HfConfig& config) {
  Transformer model = read_qwen3(config);
  refuse_dense_layers(config);
  model.experts = Experts{.num_experts = config.size("num_experts"),
                          .experts_per_token = config.size("num_experts_per_tok"),
                          .ffn_hidden_size = config.size("moe_intermediate_size")};
  return model;
}

Transformer read_mixtral(HfConfig& config) {
  Transformer model = read_llama(config);
  model.experts = Experts{.num_experts = config.size("num_local_experts"),
                          .experts_per_token = config.size("num_experts_per_tok"),
                          .ffn_hidden_size = model.ffn_hidden_size};
  return model;
}

Transformer read_deepseek_v2(HfConfig& config) {
  Transformer model = read_llama(config);
  model.num_query_groups = 0;
  model.kv_channels = 0;
  model.latent = LatentAttention{.q_rank = config.size_or("q_lora_rank", 0),
                                 .kv_rank = config.size("kv_lora_rank"),
                                 .nope_head_size = config.size("qk_nope_head_dim"),
                                 .rope_head_size = config.size("qk_rope_head_dim"),
                                 .v_head_size = config.size("v_head_dim")};
  refuse_sparse_steps(config, "moe_layer_freq");
  model.experts = Experts{.num_experts = config.size("n_routed_experts"),
                          .experts_per_token = config.size("num_experts_per_tok"),
                          .shared_experts = config.size_or("n_shared_experts", 0),
                          .ffn_hidden_size = config.size("moe_intermediate_size"),
                          .first_dense_layers = config.size_or("first_k_dense_replace", 0)};
  return model;
}

Transformer read_deepseek_v3(HfConfig& config) {
  Transformer model = read_deepseek_v2(config);
  model.experts->router_bias = true;
  model.mtp_layers = config.size_or("num_nextn_predict_layers", 0);
  return model;
}

using Reader = Transformer (*)(HfConfig&);
constexpr std::array<std::pair<const char*, Reader>, 12> kArchitectures{{
    {"LlamaForCausalLM", read_llama},
    {"MistralForCausalLM", read_llama},
    {"GPT2LMHeadModel", read_gpt2},
    {"GPTNeoXForCausalLM", read_gpt_neox},
    {"Gemma2ForCausalLM", read_gemma2},
    {"Qwen2ForCausalLM", read_qwen2},
    {"Qwen2MoeForCausalLM", read_qwen2_moe},
    {"Qwen3ForCausalLM", read_qwen3},
    {"Qwen3MoeForCausalLM", read_qwen3_moe},
    {"MixtralForCausalLM", read_mixtral},
    {"DeepseekV2ForCausalLM", read_deepseek_v2},
    {"DeepseekV3ForCausalLM", read_deepseek_v3},
}};

Reader reader_of(HfConfig& config) {
  const auto value = config.given("architectures");
  if (!value) config.value().fail("'architectures' is missing: expected a list of one name");
  const auto list = value->list();
  if (list.size() != 1) value->fail("expected a list of one name");
  std::vector<std::string> names;
  for (const auto& [name, reader] : kArchitectures) names.emplace_back(name);
  const std::string name = list.front().choice(names);
  const auto at = std::find(names.begin(), names.end(), name) - names.begin();
  return kArchitectures[at].second;
}

}  // namespace

Transformer read_hf_config(const YamlValue& root, const std::string& name) {
  HfConfig config(root);
  Transformer model = reader_of(config)(config);
  model.name = name;
  model.source = root.where().file;
  if (const std::string fault = fault_of(model); !fault.empty()) root.fail(fault);
  return model;
}

Transformer read_hf_config_file(const std::string& path, const Location& asked) {
  const YamlSource source = YamlSource::from_file(path, asked);
  // Every model's file is called config.json; its folder says whose it is.
  const auto file = std::filesystem::absolute(path);
  const bool usual = file.filename() == "config.json";
  return read_hf_config(source.root(),
                        (usual ? file.parent_path().filename() : file.stem()).string());
}

}  // namespace pipesim
