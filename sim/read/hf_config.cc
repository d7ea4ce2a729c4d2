#include "sim/read/hf_config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "sim/core/text.h"
#include "sim/read/model.h"

namespace pipesim {
namespace {

// YAML reads a quoted number as one; JSON does not.
void refuse_text(const YamlValue& value, const char* expected) {
  if (value.node().Tag() == "!") value.fail(fmt::format("expected {}, not a text", expected));
}

int whole_number(const YamlValue& value, long least) {
  refuse_text(value, "a whole number");
  return static_cast<int>(value.integer(least, kLargestSize));
}

// Keys that speak of sizes, but of nothing that a training step costs.
constexpr std::array<std::string_view, 57> kOfNoCost{"max_position_embeddings",
                                                     "model_max_length",
                                                     "seq_length",
                                                     "n_ctx",
                                                     "n_positions",
                                                     "attention_dropout",
                                                     "attn_pdrop",
                                                     "attention_probs_dropout_prob",
                                                     "hidden_dropout",
                                                     "hidden_dropout_prob",
                                                     "attn_implementation",
                                                     "_attn_implementation",
                                                     "layer_norm_eps",
                                                     "layer_norm_epsilon",
                                                     "layernorm_epsilon",
                                                     "initializer_range",
                                                     "ep_size",
                                                     "max_window_layers",
                                                     "pretraining_tp",
                                                     "slow_but_exact",
                                                     "attn_logit_softcapping",
                                                     "query_pre_attn_scalar",
                                                     "attention_multiplier",
                                                     "residual_multiplier",
                                                     "embedding_multiplier",
                                                     "logits_scaling",
                                                     "residual_in_fp32",
                                                     "rescale_prenorm_residual",
                                                     "num_logits_to_keep",
                                                     "chunk_size_feed_forward",
                                                     "output_attentions",
                                                     "output_hidden_states",
                                                     "scale_attn_by_inverse_layer_idx",
                                                     "reorder_and_upcast_attn",
                                                     "scale_attn_weights",
                                                     "router_aux_loss_coef",
                                                     "expert_capacity",
                                                     "moe_router_dtype",
                                                     "moe_shared_expert_overlap",
                                                     "attn_output_multiplier",
                                                     "time_step_rank",
                                                     "layernorm_full_attention_alpha",
                                                     "layernorm_full_attention_beta",
                                                     "layernorm_linear_attention_alpha",
                                                     "layernorm_linear_attention_beta",
                                                     "layernorm_mlp_alpha",
                                                     "layernorm_mlp_beta",
                                                     "attn_temperature_tuning",
                                                     "layerdrop",
                                                     "norm_topk_prob",
                                                     "topk_method",
                                                     "do_layer_norm_before",
                                                     "output_router_logits",
                                                     "use_moe_router_bias",
                                                     "use_mamba_kernels",
                                                     "apply_residual_connection_post_layernorm",
                                                     "layer_norm_elementwise_affine"};

// What a key's name speaks of, and which key of `model:` says it here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 40> kWords{{
    {"vision", "encoder"},
    {"audio", "encoder"},
    {"expert", "moe"},
    {"moe", "moe"},
    {"topk", "moe"},
    {"top_k", "moe"},
    {"router", "moe"},
    {"sparse", "moe"},
    {"mamba", "linear_attention"},
    {"ssm", "linear_attention"},
    {"linear_", "linear_attention"},
    {"conv", "linear_attention"},
    {"state_size", "linear_attention"},
    {"lora", "mla"},
    {"rank", "mla"},
    {"qk_", "mla"},
    {"latent", "mla"},
    {"mtp", "mtp_num_layers"},
    {"nextn", "mtp_num_layers"},
    {"window", "attention_window"},
    {"chunk", "attention_window"},
    {"sliding", "attention_window"},
    {"index_", "attention_window"},
    {"kv_", "num_query_groups"},
    {"head", "num_attention_heads"},
    {"attn", "layer_pattern"},
    {"attention", "layer_pattern"},
    {"pattern", "layer_pattern"},
    {"block", "layer_pattern"},
    {"interval", "layer_pattern"},
    {"layer", "layer_pattern"},
    {"cla_", "layer_pattern"},
    {"ffn", "ffn_hidden_size"},
    {"mlp", "ffn_hidden_size"},
    {"intermediate", "ffn_hidden_size"},
    {"dim", "hidden_size"},
    {"hidden", "hidden_size"},
    {"width", "hidden_size"},
    {"embed_size", "hidden_size"},
    {"vocab", "vocab_size"},
}};

// Tokens' numbers and settings of generation speak of sizes too, and are of none.
bool of_no_cost(const std::string& key, const YamlValue& value) {
  constexpr std::array<std::string_view, 10> kEnds{
      "_token_id", "_token_index",    "_act",  "_eps", "_dropout", "_coef", "_std",
      "_dtype",    "_scaling_factor", "_pdrop"};
  if (std::ranges::any_of(kEnds, [&](std::string_view end) { return key.ends_with(end); })) {
    return true;
  }
  if (std::ranges::find(kOfNoCost, key) != kOfNoCost.end()) return true;
  if (value.is_null()) return true;
  if (value.is_list()) return value.list().empty();  // of no layer
  if (!value.is_scalar()) return false;
  const std::string text = value.node().Scalar();
  return text == "false" || text == "0";  // a part that is not there
}

}  // namespace

int HfConfig::size(const char* key) { return whole_number(map_.require(key, "a whole number"), 1); }

int HfConfig::size_or(const char* key, int missing) {
  const auto value = given(key);
  return value ? whole_number(*value, 0) : missing;
}

int HfConfig::size_of(std::initializer_list<const char*> keys) {
  const char* first = *keys.begin();
  std::optional<int> found;
  for (const char* key : keys) {
    const auto value = given(key);
    if (value && !found) found = whole_number(*value, 1);
  }
  return found ? *found : size(first);
}

bool HfConfig::flag_or(const char* key, bool missing) {
  const auto value = given(key);
  if (value) refuse_text(*value, "true or false");
  return value ? value->flag() : missing;
}

double HfConfig::number_or(const char* key, double missing) {
  const auto value = given(key);
  if (value) refuse_text(*value, "a number");
  return value ? value->number(0, 1e9) : missing;
}

std::string HfConfig::text_or(const char* key, const std::string& missing) {
  const auto value = given(key);
  return value ? value->text() : missing;
}

std::optional<YamlValue> HfConfig::given(const char* key) {
  auto value = map_.find(key);
  if (value && value->is_null()) value.reset();
  return value;
}

std::optional<std::vector<YamlValue>> HfConfig::per_layer(const char* key, int layers) {
  const auto value = given(key);
  if (!value) return std::nullopt;
  auto list = value->list();
  if (std::cmp_not_equal(list.size(), layers)) {
    value->fail(
        fmt::format("expected one entry for each of {} layers, not {}", layers, list.size()));
  }
  return list;
}

bool HfConfig::is_stated(const std::string& key) const {
  return std::ranges::find(stated_, key) != stated_.end();
}

void HfConfig::finish() const {
  for (const auto& [key, value] : map_.unread()) {
    if (of_no_cost(key, value)) continue;
    const auto* word = std::ranges::find_if(kWords, [&key = key](const auto& each) {
      return key.find(each.first) != std::string::npos;
    });
    if (word == kWords.end() || is_stated(std::string(word->second))) continue;
    value.fail_key(fmt::format(
        "not understood, and it may change what a layer costs: write 'model: {{hf_config: FILE, "
        "{}: ...}}' beside the file, which then stands in its place",
        word->second));
  }
}

Transformer read_hf_config(const YamlValue& root, const std::string& name,
                           std::span<const std::string> stated) {
  HfConfig outer(root, stated);
  Transformer model;
  if (const auto text = outer.given("text_config")) {
    // Of a model with encoders; what is of the whole model may stand outside.
    HfConfig inner(*text, stated);
    model = read_architecture(outer, inner);
    if (const auto tied = outer.given("tie_word_embeddings");
        tied && !inner.given("tie_word_embeddings")) {
      model.tied_embeddings = tied->flag();
    }
    inner.finish();
  } else {
    model = read_architecture(outer, outer);
  }
  if (const auto vision = outer.given("vision_config")) {
    HfConfig tower(*vision, stated);
    model.encoder = read_vision(tower, outer);
    tower.finish();
  }
  outer.finish();
  model.name = name;
  model.source = root.where().file;
  if (const std::string fault = fault_of(model); !fault.empty()) root.fail(fault);
  return model;
}

Transformer read_hf_config_file(const std::string& path, const Location& asked,
                                std::span<const std::string> stated) {
  const YamlSource source = YamlSource::from_file(path, asked);
  // Every model's file is called config.json; its folder says whose it is.
  const auto file = std::filesystem::absolute(path);
  const bool usual = file.filename() == "config.json";
  return read_hf_config(source.root(),
                        (usual ? file.parent_path().filename() : file.stem()).string(), stated);
}

}  // namespace pipesim
