#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "sim/core/text.h"
#include "sim/read/hf_config.h"
#include "sim/read/model.h"

namespace pipesim {
namespace {

// The shortest pattern that, repeated, is the list.
std::string shortest(const std::string& letters) {
  for (size_t period = 1; period < letters.size(); ++period) {
    size_t at = period;
    while (at < letters.size() && letters[at] == letters[at - period]) ++at;
    if (at == letters.size()) return letters.substr(0, period);
  }
  return letters;
}

// `G` says nothing that a model without a pattern does not.
void set_pattern(Transformer& model, const std::string& letters) {
  model.layer_pattern = shortest(letters);
  if (model.layer_pattern == "G") model.layer_pattern.clear();
}

// What the file's list of kinds says, or else `letters`.
void read_layer_types(HfConfig& config, Transformer& model, const std::string& letters) {
  static const std::vector<std::string> kTypes{"full_attention", "sliding_attention",
                                               "chunked_attention", "linear_attention"};
  constexpr std::string_view kLetters = "GWWR";
  std::string read;
  if (const auto types = config.per_layer("layer_types", model.num_layers)) {
    for (const YamlValue& type : *types) {
      const auto at = std::ranges::find(kTypes, type.choice(kTypes)) - kTypes.begin();
      read += kLetters[static_cast<size_t>(at)];
    }
  }
  set_pattern(model, read.empty() ? letters : read);
  const bool windows = model.layer_pattern.find('W') != std::string::npos;
  if (!windows) model.attention_window = 0;
}

// Layers in a window of `sliding_window` tokens, as the list or else the pattern says.
void read_windows(HfConfig& config, Transformer& model, const std::string& letters, int missing) {
  model.attention_window = config.size_or("sliding_window", missing);
  read_layer_types(config, model, model.attention_window > 0 ? letters : "G");
}

void read_rotary(HfConfig& config, Transformer& model) {
  model.rotary_percent = config.number_or("partial_rotary_factor", 1);
  if (const auto turned = config.given("rotary_dim")) {
    model.rotary_percent =
        1.0 * static_cast<double>(turned->integer(0, kLargestSize)) / model.kv_channels;
  }
  if (const auto nested = config.given("rope_parameters"); nested && nested->is_map()) {
    YamlMap map(*nested);
    if (const auto part = map.find("partial_rotary_factor")) {
      model.rotary_percent = part->number(0, 1);
    }
  }
}

// All cost alike that are known; whether they are gated says the architecture.
void read_activation(HfConfig& config) {
  static const std::vector<std::string> kKnown{
      "silu",       "swish", "gelu",  "gelu_new", "gelu_fast", "gelu_pytorch_tanh",
      "quick_gelu", "relu",  "relu2", "swigluoai"};
  for (const char* key : {"hidden_act", "hidden_activation", "mlp_hidden_act"}) {
    if (const auto value = config.given(key)) (void)value->choice(kKnown);
  }
}

// What the descendants of Llama have in common.
// A file's flag of biases in attention means those of queries, keys and values.
void keep_qkv_bias_alone(Transformer& model) {
  model.qkv_bias = model.linear_bias || model.attention_bias;
  model.linear_bias = false;
  model.attention_bias = false;
  model.mlp_bias = false;
}

Transformer read_llama(HfConfig& config) {
  Transformer model;
  model.gated_mlp = true;
  model.num_layers = config.size("num_hidden_layers");
  model.hidden_size = config.size("hidden_size");
  model.ffn_hidden_size = config.size_of({"intermediate_size", "moe_intermediate_size"});
  model.vocab_size = config.size("vocab_size");
  model.num_attention_heads = config.size("num_attention_heads");
  model.num_query_groups = config.size_or("num_key_value_heads", model.num_attention_heads);
  model.kv_channels = config.size_or("head_dim", model.hidden_size / model.num_attention_heads);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", false);
  model.attention_bias = config.flag_or("attention_bias", false);
  model.mlp_bias = config.flag_or("mlp_bias", model.attention_bias);
  if (model.attention_bias && model.mlp_bias) {
    model.linear_bias = true;
    model.attention_bias = false;
    model.mlp_bias = false;
  }
  read_rotary(config, model);
  read_activation(config);
  return model;
}

Transformer read_mistral(HfConfig& config) {
  Transformer model = read_llama(config);
  read_windows(config, model, "W", 0);
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
  model.attention_bias = false;
  model.norm = Norm::kLayerNorm;
  model.rotary_percent = config.number_or("rotary_pct", 1);
  return model;
}

Transformer read_gemma2(HfConfig& config) {
  Transformer model = read_llama(config);
  model.kv_channels = config.size_or("head_dim", 256);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  model.post_norms = true;
  read_windows(config, model, "WG", 0);
  return model;
}

// Files leave out what equals the class's defaults.
Transformer read_gemma3(HfConfig& config) {
  Transformer model;
  model.gated_mlp = true;
  model.num_layers = config.size_or("num_hidden_layers", 26);
  model.hidden_size = config.size_or("hidden_size", 2304);
  model.ffn_hidden_size = config.size_or("intermediate_size", 9216);
  model.vocab_size = config.size_or("vocab_size", 262208);
  model.num_attention_heads = config.size_or("num_attention_heads", 8);
  model.num_query_groups = config.size_or("num_key_value_heads", 4);
  model.kv_channels = config.size_or("head_dim", 256);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  model.attention_bias = config.flag_or("attention_bias", false);
  model.post_norms = true;
  model.qk_norm = QkNorm::kPerHead;
  read_activation(config);
  const auto period = static_cast<size_t>(config.size_or("sliding_window_pattern", 6));
  read_windows(config, model, std::string(period - 1, 'W') + "G", 4096);
  return model;
}

Transformer read_qwen2(HfConfig& config) {
  Transformer model = read_llama(config);
  model.qkv_bias = config.flag_or("qkv_bias", true);
  const bool slides = config.flag_or("use_sliding_window", false);
  const int first = config.size_or("max_window_layers", model.num_layers);
  model.attention_window = config.size_or("sliding_window", 0);
  std::string letters = "G";
  if (slides && model.attention_window > 0 && first < model.num_layers) {
    letters = std::string(static_cast<size_t>(first), 'G') +
              std::string(static_cast<size_t>(model.num_layers - first), 'W');
  }
  read_layer_types(config, model, letters);
  return model;
}

Transformer read_qwen3(HfConfig& config) {
  Transformer model = read_qwen2(config);
  model.qkv_bias = config.flag_or("qkv_bias", false);
  model.kv_channels = config.size_or("head_dim", 128);
  model.qk_norm = QkNorm::kPerHead;
  return model;
}

// Only patterns of a first layer and a step have a word here.
void refuse_other_steps(HfConfig& config) {
  if (const auto dense = config.given("mlp_only_layers"); dense && !dense->list().empty()) {
    dense->fail(
        "layers without experts between those with them: write 'first_dense_layers' and "
        "'every' in 'moe'");
  }
}

// Layer i has experts where i + 1 divides by the step.
void read_sparse_step(HfConfig& config, Experts& experts) {
  refuse_other_steps(config);
  experts.every = config.size_or("decoder_sparse_step", 1);
  experts.first_dense_layers = experts.every - 1;
}

Transformer read_qwen2_moe(HfConfig& config) {
  Transformer model = read_qwen2(config);
  Experts experts{.num_experts = config.size("num_experts"),
                  .experts_per_token = config.size("num_experts_per_tok"),
                  .ffn_hidden_size = config.size("moe_intermediate_size")};
  const int shared = config.size_or("shared_expert_intermediate_size", 0);
  experts.shared_experts = shared > 0 ? 1 : 0;
  experts.shared_ffn_hidden_size = shared;
  experts.shared_gate = shared > 0;
  read_sparse_step(config, experts);
  model.experts = experts;
  return model;
}

Transformer read_qwen3_moe(HfConfig& config) {
  Transformer model = read_qwen2_moe(config);
  model.qkv_bias = config.flag_or("qkv_bias", false);
  model.kv_channels = config.size_or("head_dim", 128);
  model.qk_norm = QkNorm::kPerHead;
  (void)config.given("use_qk_norm");
  return model;
}

void read_delta(HfConfig& config, Transformer& model) {
  model.linear = LinearAttention{.kind = LinearAttention::Kind::kGatedDelta,
                                 .num_heads = config.size_or("linear_num_value_heads", 32),
                                 .head_size = config.size_or("linear_value_head_dim", 128),
                                 .key_heads = config.size_or("linear_num_key_heads", 16),
                                 .key_head_size = config.size_or("linear_key_head_dim", 128),
                                 .conv_kernel = config.size_or("linear_conv_kernel_dim", 4),
                                 .chunk_size = 64};
  const auto period = static_cast<size_t>(config.size_or("full_attention_interval", 4));
  read_layer_types(config, model, std::string(period - 1, 'R') + "G");
  model.output_gate = config.flag_or("attn_output_gate", true);
}

Transformer read_qwen3_next(HfConfig& config) {
  Transformer model = read_qwen3_moe(config);
  model.kv_channels = config.size_or("head_dim", 256);
  if (!config.given("partial_rotary_factor") && !config.given("rope_parameters")) {
    model.rotary_percent = 0.25;
  }
  read_delta(config, model);
  model.mtp_layers = config.size_or("mtp_num_hidden_layers", 0);
  return model;
}

Transformer read_qwen3_5(HfConfig& config) {
  Transformer model = read_qwen3(config);
  model.kv_channels = config.size_or("head_dim", 256);
  read_delta(config, model);
  model.mtp_layers = config.size_or("mtp_num_hidden_layers", 0);
  return model;
}

Transformer read_mixtral(HfConfig& config) {
  Transformer model = read_mistral(config);
  model.experts = Experts{.num_experts = config.size_of({"num_local_experts", "num_experts"}),
                          .experts_per_token = config.size("num_experts_per_tok"),
                          .ffn_hidden_size = model.ffn_hidden_size};
  return model;
}

// Norms before and after attention and MLP.
Transformer read_grok(HfConfig& config) {
  Transformer model = read_mixtral(config);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  model.post_norms = true;
  return model;
}

// A dense MLP beside the experts is an expert that every token passes.
Transformer read_arctic(HfConfig& config) {
  Transformer model = read_mixtral(config);
  if (config.flag_or("parallel_attn_mlp_res", true) && config.flag_or("use_residual", true)) {
    model.experts->shared_experts = 1;
    model.experts->shared_ffn_hidden_size = model.hidden_size;
  }
  model.experts->every = config.size_or("moe_layer_frequency", 1);
  model.experts->first_dense_layers = model.experts->every - 1;
  return model;
}

void read_routing(HfConfig& config, Experts& experts) {
  experts.groups = std::max(1, config.size_or("n_group", 1));
  experts.groups_per_token = std::max(1, config.size_or("topk_group", 1));
}

// Experts as DeepSeek's and GLM's files name them.
void read_routed(HfConfig& config, Transformer& model) {
  const auto step = config.given("moe_layer_freq");
  if (step && step->is_scalar() && step->integer(1, kLargestSize) != 1) {
    step->fail("experts in every so many layers: write 'first_dense_layers' and 'every' in 'moe'");
  }
  model.experts = Experts{.num_experts = config.size_of({"n_routed_experts", "num_experts"}),
                          .experts_per_token = config.size("num_experts_per_tok"),
                          .shared_experts = config.size_or("n_shared_experts", 0),
                          .ffn_hidden_size = config.size("moe_intermediate_size"),
                          .first_dense_layers = config.size_or("first_k_dense_replace", 0)};
  read_routing(config, *model.experts);
}

Transformer read_deepseek_v2(HfConfig& config) {
  Transformer model = read_llama(config);
  (void)config.given("qk_head_dim");  // of both parts together
  model.num_query_groups = 0;
  model.kv_channels = 0;
  model.rotary_percent = 1;
  model.latent = LatentAttention{.q_rank = config.size_or("q_lora_rank", 0),
                                 .kv_rank = config.size("kv_lora_rank"),
                                 .nope_head_size = config.size("qk_nope_head_dim"),
                                 .rope_head_size = config.size("qk_rope_head_dim"),
                                 .v_head_size = config.size("v_head_dim")};
  read_routed(config, model);
  return model;
}

Transformer read_deepseek_v3(HfConfig& config) {
  Transformer model = read_deepseek_v2(config);
  model.experts->router_bias = true;
  model.mtp_layers = config.size_or("num_nextn_predict_layers", 0);
  return model;
}

Transformer read_glm4_moe(HfConfig& config) {
  Transformer model = read_llama(config);
  keep_qkv_bias_alone(model);
  model.qk_norm = config.flag_or("use_qk_norm", false) ? QkNorm::kPerHead : QkNorm::kNone;
  model.rotary_percent = config.number_or("partial_rotary_factor", 0.5);
  read_routed(config, model);
  model.experts->router_bias = true;
  model.mtp_layers = config.size_or("num_nextn_predict_layers", 0);
  return model;
}

// `interleave_moe_layer_step` s: layers s - 1, 2 s - 1, ... have experts. Windows are chunks, in
// the layers that turn positions.
Transformer read_llama4(HfConfig& config) {
  Transformer model = read_llama(config);
  const int expert = model.ffn_hidden_size;
  model.ffn_hidden_size = config.size_or("intermediate_size_mlp", 16384);
  Experts experts{.num_experts = config.size_or("num_local_experts", 16),
                  .experts_per_token = config.size_or("num_experts_per_tok", 1),
                  .shared_experts = 1,
                  .ffn_hidden_size = expert};
  experts.every = config.size_or("interleave_moe_layer_step", 1);
  experts.first_dense_layers = experts.every - 1;
  if (const auto layers = config.given("moe_layers"); layers && !layers->list().empty()) {
    std::string expected;
    for (int layer = experts.every - 1; layer < model.num_layers; layer += experts.every) {
      expected += fmt::format("{} ", layer);
    }
    std::string read;
    for (const YamlValue& layer : layers->list()) {
      read += fmt::format("{} ", layer.integer(0, kLargestSize));
    }
    if (read != expected) {
      layers->fail("no layers of one step: write 'first_dense_layers' and 'every' in 'moe'");
    }
  }
  model.experts = experts;
  model.attention_window = config.size_or("attention_chunk_size", 8192);
  model.chunked_window = true;
  model.rotary_in_windows_only = true;
  const auto period = static_cast<size_t>(config.size_or("no_rope_layer_interval", 4));
  std::string letters = std::string(period - 1, 'W') + "G";
  const auto listed = config.given("no_rope_layers");
  if (listed && !listed->list().empty()) {
    const auto turned = config.per_layer("no_rope_layers", model.num_layers);
    letters.clear();
    for (const YamlValue& each : *turned) letters += each.integer(0, 1) == 1 ? 'W' : 'G';
  }
  read_layer_types(config, model, letters);
  if (config.flag_or("use_qk_norm", true)) model.qk_norm = QkNorm::kWithoutWeights;
  return model;
}

Transformer read_gpt_oss(HfConfig& config) {
  Transformer model = read_llama(config);
  model.kv_channels = config.size_or("head_dim", 64);
  model.linear_bias = true;
  model.attention_bias = false;
  model.sinks = true;
  model.experts =
      Experts{.num_experts = config.size_of({"num_local_experts", "num_experts"}),
              .experts_per_token = config.size_of({"num_experts_per_tok", "experts_per_token"}),
              .ffn_hidden_size = model.ffn_hidden_size,
              .router_bias = true};
  read_windows(config, model, "WG", 128);
  return model;
}

// Lightning attention in layers of kind 0, softmax in those of kind 1.
Transformer read_minimax(HfConfig& config) {
  Transformer model = read_llama(config);
  model.experts = Experts{.num_experts = config.size("num_local_experts"),
                          .experts_per_token = config.size("num_experts_per_tok"),
                          .ffn_hidden_size = model.ffn_hidden_size};
  model.linear = LinearAttention{.kind = LinearAttention::Kind::kLightning,
                                 .num_heads = model.num_attention_heads,
                                 .head_size = model.kv_channels,
                                 .key_heads = model.num_attention_heads,
                                 .key_head_size = model.kv_channels,
                                 .conv_kernel = 0,
                                 .chunk_size = config.size_or("block_size", 256)};
  std::string letters = "RRRRRRRG";
  if (const auto types = config.per_layer("attn_type_list", model.num_layers)) {
    letters.clear();
    for (const YamlValue& type : *types) letters += type.integer(0, 1) == 0 ? 'R' : 'G';
  }
  read_layer_types(config, model, letters);
  return model;
}

Transformer read_minimax_m2(HfConfig& config) {
  Transformer model = read_llama(config);
  if (const auto types = config.per_layer("attn_type_list", model.num_layers)) {
    for (const YamlValue& type : *types) (void)type.integer(1, 1);
  }
  (void)config.text_or("qk_norm_type", "per_layer");
  model.qk_norm = config.flag_or("use_qk_norm", true) ? QkNorm::kWhole : QkNorm::kNone;
  model.experts = Experts{.num_experts = config.size("num_local_experts"),
                          .experts_per_token = config.size("num_experts_per_tok"),
                          .ffn_hidden_size = model.ffn_hidden_size,
                          .router_bias = config.flag_or("use_routing_bias", true)};
  if (config.flag_or("use_mtp", false)) {
    model.mtp_layers =
        config.size_or("num_mtp_modules", 0) * config.size_or("mtp_transformer_layers", 1);
  }
  (void)config.given("num_mtp_modules");
  (void)config.given("mtp_transformer_layers");
  return model;
}

// Squared ReLU without a gate, norms with a bias.
Transformer read_nemotron(HfConfig& config) {
  Transformer model = read_llama(config);
  model.gated_mlp = false;
  model.norm = Norm::kLayerNorm;
  model.rotary_percent = config.number_or("partial_rotary_factor", 0.5);
  return model;
}

std::string hybrid_letters(HfConfig& config) {
  static const std::vector<std::string> kBlocks{"mamba", "attention", "mlp", "moe"};
  constexpr std::string_view kLetters = "M*-E";
  if (const auto pattern = config.given("hybrid_override_pattern")) return pattern->text();
  const auto blocks = config.given("layers_block_type");
  if (!blocks) config.value().fail("'hybrid_override_pattern' is missing: expected M, *, - and E");
  std::string letters;
  for (const YamlValue& block : blocks->list()) {
    const auto at = std::ranges::find(kBlocks, block.choice(kBlocks)) - kBlocks.begin();
    letters += kLetters[static_cast<size_t>(at)];
  }
  return letters;
}

// Every layer is one of Mamba-2, attention, MLP and experts.
Transformer read_nemotron_h(HfConfig& config) {
  Transformer model;
  const std::string letters = hybrid_letters(config);
  model.num_layers = config.size_or("num_hidden_layers", static_cast<int>(letters.size()));
  model.hidden_size = config.size("hidden_size");
  model.ffn_hidden_size = config.size("intermediate_size");
  model.vocab_size = config.size("vocab_size");
  model.num_attention_heads = config.size("num_attention_heads");
  model.num_query_groups = config.size_or("num_key_value_heads", model.num_attention_heads);
  model.kv_channels = config.size_of({"head_dim", "attention_head_dim"});
  model.tied_embeddings = config.flag_or("tie_word_embeddings", false);
  model.positions = Positions::kNone;
  (void)config.given("expand");  // the inner width is that of the heads
  (void)config.given("use_conv_bias");
  model.linear = LinearAttention{.kind = LinearAttention::Kind::kMamba2,
                                 .num_heads = config.size("mamba_num_heads"),
                                 .head_size = config.size("mamba_head_dim"),
                                 .key_heads = config.size("n_groups"),
                                 .key_head_size = config.size("ssm_state_size"),
                                 .conv_kernel = config.size_or("conv_kernel", 4),
                                 .chunk_size = config.size_or("chunk_size", 128)};
  if (letters.find('E') != std::string::npos) {
    const int shared = config.size_or("moe_shared_expert_intermediate_size", 0);
    const int number = config.size_or("n_shared_experts", 1);
    model.experts = Experts{.num_experts = config.size("n_routed_experts"),
                            .experts_per_token = config.size("num_experts_per_tok"),
                            .shared_experts = shared > 0 ? number : 0,
                            .ffn_hidden_size = config.size("moe_intermediate_size"),
                            .shared_ffn_hidden_size = shared,
                            .router_bias = true};
    read_routing(config, *model.experts);
  }
  read_activation(config);
  (void)config.given("partial_rotary_factor");
  set_pattern(model, letters);
  return model;
}

Transformer read_falcon(HfConfig& config) {
  Transformer model;
  model.num_layers = config.size_of({"num_hidden_layers", "n_layer"});
  model.hidden_size = config.size_of({"hidden_size", "n_embed"});
  model.num_attention_heads = config.size_of({"num_attention_heads", "n_head"});
  model.kv_channels = model.hidden_size / model.num_attention_heads;
  const bool newer = config.flag_or("new_decoder_architecture", false);
  const bool one = !newer && config.flag_or("multi_query", true);
  (void)config.given("multi_query");
  const int groups = config.size_or("n_head_kv", model.num_attention_heads);
  model.num_query_groups = one ? 1 : config.size_or("num_kv_heads", groups);
  model.ffn_hidden_size = config.size_or("ffn_hidden_size", 4 * model.hidden_size);
  model.vocab_size = config.size("vocab_size");
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  model.linear_bias = config.flag_or("bias", false);
  model.norm = Norm::kLayerNorm;
  if (config.flag_or("alibi", false)) model.positions = Positions::kNone;
  (void)config.given("parallel_attn");
  (void)config.given("num_ln_in_parallel_attn");
  return model;
}

Transformer read_bloom(HfConfig& config) {
  Transformer model;
  model.num_layers = config.size_of({"n_layer", "num_hidden_layers"});
  model.hidden_size = config.size_of({"hidden_size", "n_embed"});
  model.num_attention_heads = config.size_of({"n_head", "num_attention_heads"});
  model.num_query_groups = model.num_attention_heads;
  model.kv_channels = model.hidden_size / model.num_attention_heads;
  model.ffn_hidden_size = config.size_or("n_inner", 4 * model.hidden_size);
  model.vocab_size = config.size("vocab_size");
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  model.linear_bias = true;
  model.norm = Norm::kLayerNorm;
  model.positions = Positions::kNone;  // ALiBi
  return model;
}

Transformer read_opt(HfConfig& config) {
  constexpr int kOffset = 2;  // rows before the first position
  Transformer model;
  model.num_layers = config.size("num_hidden_layers");
  model.hidden_size = config.size("hidden_size");
  model.num_attention_heads = config.size("num_attention_heads");
  model.num_query_groups = model.num_attention_heads;
  model.kv_channels = model.hidden_size / model.num_attention_heads;
  model.ffn_hidden_size = config.size("ffn_dim");
  model.vocab_size = config.size("vocab_size");
  model.max_position_embeddings = config.size("max_position_embeddings") + kOffset;
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  model.linear_bias = true;
  model.norm = Norm::kLayerNorm;
  model.positions = Positions::kLearned;
  const int width = config.size_or("word_embed_proj_dim", model.hidden_size);
  if (width != model.hidden_size) {
    config.given("word_embed_proj_dim")->fail("an embedding of another width is not modelled");
  }
  return model;
}

Transformer read_dbrx(HfConfig& config) {
  Transformer model;
  model.gated_mlp = true;
  model.num_layers = config.size("n_layers");
  model.hidden_size = config.size("d_model");
  model.num_attention_heads = config.size("n_heads");
  model.kv_channels = model.hidden_size / model.num_attention_heads;
  model.vocab_size = config.size("vocab_size");
  model.norm = Norm::kLayerNormWithoutBias;
  (void)config.given("max_seq_len");
  const auto nested = [&](const char* key) {
    const auto value = config.given(key);
    if (!value) config.value().fail(fmt::format("'{}' is missing: expected a map", key));
    return YamlMap(*value);
  };
  const auto size = [](YamlMap& map, const char* key) {
    return static_cast<int>(map.require(key, "a whole number").integer(1, kLargestSize));
  };
  YamlMap attention = nested("attn_config");
  model.num_query_groups = size(attention, "kv_n_heads");
  YamlMap ffn = nested("ffn_config");
  model.ffn_hidden_size = size(ffn, "ffn_hidden_size");
  model.experts = Experts{.num_experts = size(ffn, "moe_num_experts"),
                          .experts_per_token = size(ffn, "moe_top_k"),
                          .ffn_hidden_size = model.ffn_hidden_size};
  return model;
}

// Norms after attention and MLP alone are as many as before them alone.
Transformer read_olmo2(HfConfig& config) {
  Transformer model = read_llama(config);
  model.qk_norm = QkNorm::kWhole;
  return model;
}

// A number, or a list of the same number for every layer.
int same_in_all_layers(HfConfig& config, const char* key) {
  const auto value = config.given(key);
  if (!value || value->is_scalar()) return config.size(key);
  const auto list = value->list();
  if (list.empty()) value->fail("expected a number, or a list of one for each layer");
  for (const YamlValue& each : list) {
    if (each.integer(1, kLargestSize) != list.front().integer(1, kLargestSize)) {
      each.fail("expected the same number in every layer");
    }
  }
  return static_cast<int>(list.front().integer(1, kLargestSize));
}

// `cla_share_factor` layers have the keys and values of the first of them.
Transformer read_hunyuan(HfConfig& config) {
  Transformer model = read_llama(config);
  model.kv_channels = config.size_or("attention_head_dim", model.kv_channels);
  model.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  if (config.flag_or("use_qk_norm", true)) model.qk_norm = QkNorm::kPerHead;
  Experts experts{.num_experts = same_in_all_layers(config, "num_experts"),
                  .experts_per_token = same_in_all_layers(config, "moe_topk"),
                  .shared_experts = 1,
                  .ffn_hidden_size = model.ffn_hidden_size};
  if (config.flag_or("use_mixed_mlp_moe", true)) {
    experts.shared_experts = same_in_all_layers(config, "num_shared_expert");
  } else {
    experts.shared_experts = 0;
  }
  experts.first_dense_layers = config.size_or("moe_layer_num_skipped", 0);
  model.experts = experts;
  const int share = config.size_or("cla_share_factor", 1);
  if (config.flag_or("use_cla", false) && share > 1) {
    set_pattern(model, "G" + std::string(static_cast<size_t>(share - 1), 'C'));
  }
  return model;
}

Transformer read_mimo(HfConfig& config) {
  Transformer model = read_qwen2(config);
  keep_qkv_bias_alone(model);
  model.mtp_layers = config.size_or("num_nextn_predict_layers", 0);
  return model;
}

using Reader = Transformer (*)(HfConfig&);
constexpr std::array<std::pair<const char*, Reader>, 43> kArchitectures{{
    {"LlamaForCausalLM", read_llama},
    {"MistralForCausalLM", read_mistral},
    {"GPT2LMHeadModel", read_gpt2},
    {"GPTNeoXForCausalLM", read_gpt_neox},
    {"Gemma2ForCausalLM", read_gemma2},
    {"Gemma3ForCausalLM", read_gemma3},
    {"Gemma3ForConditionalGeneration", read_gemma3},
    {"Qwen2ForCausalLM", read_qwen2},
    {"Qwen2MoeForCausalLM", read_qwen2_moe},
    {"Qwen3ForCausalLM", read_qwen3},
    {"Qwen3MoeForCausalLM", read_qwen3_moe},
    {"Qwen3NextForCausalLM", read_qwen3_next},
    {"Qwen3_5ForConditionalGeneration", read_qwen3_5},
    {"Qwen3_5MoeForConditionalGeneration", read_qwen3_next},
    {"MixtralForCausalLM", read_mixtral},
    {"DeepseekV2ForCausalLM", read_deepseek_v2},
    {"DeepseekV3ForCausalLM", read_deepseek_v3},
    {"DeepseekV32ForCausalLM", read_deepseek_v3},
    {"GlmMoeDsaForCausalLM", read_deepseek_v3},
    {"Glm4MoeForCausalLM", read_glm4_moe},
    {"Llama4ForCausalLM", read_llama4},
    {"Llama4ForConditionalGeneration", read_llama4},
    {"Mistral3ForConditionalGeneration", read_mistral},
    {"Phi3ForCausalLM", read_mistral},
    {"GptOssForCausalLM", read_gpt_oss},
    {"MiniMaxForCausalLM", read_minimax},
    {"MiniMaxText01ForCausalLM", read_minimax},
    {"MiniMaxM1ForCausalLM", read_minimax},
    {"MiniMaxM2ForCausalLM", read_minimax_m2},
    {"NemotronForCausalLM", read_nemotron},
    {"NemotronHForCausalLM", read_nemotron_h},
    {"FalconForCausalLM", read_falcon},
    {"BloomForCausalLM", read_bloom},
    {"OPTForCausalLM", read_opt},
    {"Grok1ModelForCausalLM", read_grok},
    {"DbrxForCausalLM", read_dbrx},
    {"ArcticForCausalLM", read_arctic},
    {"Olmo2ForCausalLM", read_olmo2},
    {"GraniteForCausalLM", read_llama},
    {"YiForCausalLM", read_llama},
    {"InternLM2ForCausalLM", read_llama},
    {"HunYuanForCausalLM", read_hunyuan},
    {"MiMoForCausalLM", read_mimo},
}};

int square(int value) { return value * value; }

}  // namespace

Transformer read_architecture(HfConfig& outer, HfConfig& config) {
  const auto value = outer.given("architectures");
  if (!value) outer.value().fail("'architectures' is missing: expected a list of one name");
  const auto list = value->list();
  if (list.size() != 1) value->fail("expected a list of one name");
  std::vector<std::string> names;
  for (const auto& [name, reader] : kArchitectures) names.emplace_back(name);
  const std::string name = list.front().text();
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return kArchitectures[found - names.begin()].second(config);
  const std::string near = nearest_name(name, names);
  list.front().fail(fmt::format(
      "architecture '{}' is not known{}: state its shape as 'model: {{base: NAME, ...}}' with the "
      "nearest of `pipesim list models` and the keys of docs/reference/scenario.md, \"Model\"",
      name, near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

std::optional<Encoder> read_vision(HfConfig& vision, HfConfig& outer) {
  Encoder encoder;
  encoder.num_layers = vision.size_of({"num_hidden_layers", "depth"});
  encoder.hidden_size = vision.size("hidden_size");
  encoder.num_attention_heads = vision.size_of({"num_attention_heads", "num_heads"});
  encoder.ffn_hidden_size = vision.size_of({"intermediate_size", "mlp_dim"});
  const int patch = vision.size("patch_size");
  encoder.inputs = square(patch) * vision.size_or("num_channels", 3);
  encoder.patches = square(vision.size("image_size") / patch);
  encoder.merged = square(vision.size_or("spatial_merge_size", 1));
  if (const double ratio = vision.number_or("pixel_shuffle_ratio", 0); ratio > 0) {
    encoder.merged = static_cast<int>(std::lround(1 / (ratio * ratio)));
  }
  if (const int tokens = outer.size_or("mm_tokens_per_image", 0); tokens > 0) {
    encoder.merged = std::max(1, encoder.patches / tokens);
  }
  if (const int merge = outer.size_or("spatial_merge_size", 0); merge > 0) {
    encoder.merged = square(merge);
  }
  encoder.projector_size = vision.size_or("projector_output_dim", 0);
  for (const char* read :
       {"projector_input_dim", "vision_output_dim", "head_dim", "num_key_value_heads",
        "multi_modal_projector_bias", "vision_feature_layer", "vision_feature_select_strategy",
        "vision_use_head", "attention_bias"}) {
    (void)vision.given(read);
  }
  for (const char* read : {"vision_feature_layer", "multimodal_projector_bias",
                           "projector_hidden_act", "vision_feature_select_strategy"}) {
    (void)outer.given(read);
  }
  return encoder;
}

}  // namespace pipesim
