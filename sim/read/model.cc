#include "sim/read/model.h"

#include <algorithm>
#include <fmt/format.h>

#include "sim/core/data_folder.h"
#include "sim/core/input_text.h"
#include "sim/core/text.h"
#include "sim/read/traced.h"

namespace pipesim {
namespace {

void set_size(YamlMap& map, const char* key, int& size, long least = 1) {
  if (const auto value = map.find(key))
    size = static_cast<int>(value->integer(least, kLargestSize));
}

// A size that has no default.
void need_size(YamlMap& map, const char* key, const char* what, int& size) {
  if (size > 0) {
    set_size(map, key, size);
  } else {
    size = static_cast<int>(map.require(key, what).integer(1, kLargestSize));
  }
}

// An enumeration whose values have the names of `words`, in their order.
template <class Enum>
void set_choice(YamlMap& map, const char* key, const std::vector<std::string>& words, Enum& value) {
  const auto given = map.find(key);
  if (!given) return;
  const std::string word = given->choice(words);
  value = static_cast<Enum>(std::ranges::find(words, word) - words.begin());
}

Transformer family_defaults(YamlMap& map) {
  static const std::vector<std::string> kFamilies{"gpt", "llama"};
  const auto family = map.find("family");
  Transformer model;
  model.name = "model";
  model.source = "the scenario";
  if (family && family->choice(kFamilies) == "llama") {
    model.gated_mlp = true;
    return model;
  }
  model.tied_embeddings = true;
  model.linear_bias = true;
  model.norm = Norm::kLayerNorm;
  model.positions = Positions::kLearned;
  return model;
}

void read_kinds(YamlMap& map, Transformer& model) {
  static const std::vector<std::string> kNorms{"LayerNorm", "RMSNorm", "LayerNorm_without_bias"};
  static const std::vector<std::string> kPositions{"learned_absolute", "rope", "none", "relative"};
  static const std::vector<std::string> kQkNorms{"false", "true", "whole", "without_weights"};
  set_choice(map, "normalization", kNorms, model.norm);
  set_choice(map, "position_embedding_type", kPositions, model.positions);
  bool untied = !model.tied_embeddings;
  set_flag(map, "untie_embeddings_and_output_weights", untied);
  model.tied_embeddings = !untied;
  set_flag(map, "gated_linear_unit", model.gated_mlp);
  set_flag(map, "add_bias_linear", model.linear_bias);
  set_flag(map, "add_qkv_bias", model.qkv_bias);
  set_flag(map, "add_attention_bias", model.attention_bias);
  set_flag(map, "add_mlp_bias", model.mlp_bias);
  set_choice(map, "qk_layernorm", kQkNorms, model.qk_norm);
  set_flag(map, "post_norms", model.post_norms);
}

// Reads the keys by which layers of attention differ.
void read_pattern(YamlMap& map, Transformer& model) {
  if (const auto pattern = map.find("layer_pattern")) model.layer_pattern = pattern->text();
  set_size(map, "attention_window", model.attention_window, 0);
  set_flag(map, "chunked_window", model.chunked_window);
  set_flag(map, "rotary_in_windows_only", model.rotary_in_windows_only);
  set_flag(map, "bidirectional_attention", model.bidirectional);
  if (const auto part = map.find("rotary_percent")) model.rotary_percent = part->number(0, 1);
  set_flag(map, "attention_output_gate", model.output_gate);
  set_flag(map, "attention_sinks", model.sinks);
}

void read_mlp_sizes(YamlMap& map, Transformer& model) {
  const auto value = map.find("mlp_sizes");
  if (!value) return;
  const std::vector<YamlValue> sizes = value->list();
  if (sizes.size() > model.mlp_sizes.size()) {
    value->fail(fmt::format("at most {} sizes, for the letters a to p", model.mlp_sizes.size()));
  }
  model.mlp_sizes = {};
  for (size_t i = 0; i < sizes.size(); ++i) {
    model.mlp_sizes.at(i) = static_cast<int>(sizes[i].integer(1, kLargestSize));
  }
}

void read_linear(YamlMap& outer, Transformer& model) {
  static const std::vector<std::string> kKinds{"gated_delta", "lightning", "mamba2",
                                               "mamba1",      "kda",       "short_conv"};
  const auto value = outer.find("linear_attention");
  if (!value) return;
  YamlMap map(*value);
  const bool given = model.linear.has_value();
  LinearAttention linear = model.linear.value_or(LinearAttention{});
  if (!given) (void)map.require("kind", "the kind of linear attention");
  set_choice(map, "kind", kKinds, linear.kind);
  need_size(map, "num_heads", "the number of heads of values", linear.num_heads);
  need_size(map, "head_size", "the size of a head of values", linear.head_size);
  if (!given) linear.key_heads = linear.num_heads;
  if (!given) linear.key_head_size = linear.head_size;
  set_size(map, "key_heads", linear.key_heads);
  set_size(map, "key_head_size", linear.key_head_size);
  set_size(map, "conv_kernel", linear.conv_kernel, 0);
  set_size(map, "chunk_size", linear.chunk_size);
  set_size(map, "step_rank", linear.step_rank, 0);
  set_size(map, "gate_rank", linear.gate_rank, 0);
  map.finish();
  model.linear = linear;
}

void read_sparse(YamlMap& outer, Transformer& model) {
  const auto value = outer.find("sparse_attention");
  if (!value) return;
  YamlMap map(*value);
  SparseAttention sparse = model.sparse.value_or(SparseAttention{});
  need_size(map, "num_heads", "the indexer's heads", sparse.num_heads);
  need_size(map, "head_size", "the size of an indexer's head", sparse.head_size);
  need_size(map, "topk", "the tokens that a query attends to", sparse.topk);
  map.finish();
  model.sparse = sparse;
}

void read_compressed(YamlMap& outer, Transformer& model) {
  const auto value = outer.find("compressed_attention");
  if (!value) return;
  YamlMap map(*value);
  CompressedAttention compressed = model.compressed.value_or(CompressedAttention{});
  need_size(map, "q_lora_rank", "the rank of queries", compressed.q_rank);
  need_size(map, "output_groups", "the groups of outputs", compressed.output_groups);
  need_size(map, "output_rank", "the rank of a group's output", compressed.output_rank);
  need_size(map, "ratio", "the tokens that become one in layers Y", compressed.ratio);
  need_size(map, "indexed_ratio", "the tokens that become one in layers X",
            compressed.indexed_ratio);
  map.finish();
  model.compressed = compressed;
}

// Sizes that are left out are those of the other layers.
void read_window_heads(YamlMap& outer, Transformer& model) {
  const auto value = outer.find("window_attention");
  if (!value) return;
  YamlMap map(*value);
  WindowHeads own = model.window_heads.value_or(WindowHeads{
      model.num_attention_heads, model.num_query_groups, model.kv_channels, model.v_channels});
  set_size(map, "num_attention_heads", own.num_attention_heads);
  set_size(map, "num_query_groups", own.num_query_groups);
  set_size(map, "kv_channels", own.kv_channels);
  set_size(map, "v_channels", own.v_channels, 0);
  map.finish();
  model.window_heads = own;
}

void read_cross(YamlMap& outer, Transformer& model) {
  const auto value = outer.find("cross_attention");
  if (!value) return;
  YamlMap map(*value);
  CrossAttention cross = model.cross.value_or(CrossAttention{});
  need_size(map, "encoder_layers", "the layers that encode", cross.encoder_layers);
  set_size(map, "decoder_seq_length", cross.decoder_seq_length);
  map.finish();
  model.cross = cross;
}

void read_encoder(YamlMap& outer, Transformer& model) {
  const auto value = outer.find("encoder");
  if (!value) return;
  YamlMap map(*value);
  Encoder encoder = model.encoder.value_or(Encoder{});
  set_size(map, "images", encoder.images, 0);
  // None of its own leaves out one that is written beside it, or that the model has.
  if (encoder.images > 0 || map.find("num_layers")) {
    need_size(map, "num_layers", "the number of layers", encoder.num_layers);
    need_size(map, "hidden_size", "the hidden size", encoder.hidden_size);
    need_size(map, "num_attention_heads", "the number of heads", encoder.num_attention_heads);
    if (encoder.ffn_hidden_size == 0) encoder.ffn_hidden_size = 4 * encoder.hidden_size;
    set_size(map, "ffn_hidden_size", encoder.ffn_hidden_size);
    need_size(map, "patches", "the patches of an image", encoder.patches);
    need_size(map, "patch_inputs", "the numbers of a patch", encoder.inputs);
    set_size(map, "merged_patches", encoder.merged);
    set_size(map, "projector_size", encoder.projector_size, 0);
    set_size(map, "projectors", encoder.projectors);
    set_flag(map, "gated_linear_unit", encoder.gated_mlp);
    set_flag(map, "frozen", encoder.frozen);
    set_flag(map, "replicated", encoder.replicated);
  }
  map.finish();
  model.encoder = encoder.images > 0 ? std::optional(encoder) : std::nullopt;
}

void read_latent(YamlMap& outer, Transformer& model) {
  const auto value = outer.find("mla");
  if (!value) return;
  YamlMap map(*value);
  LatentAttention latent = model.latent.value_or(LatentAttention{});
  set_size(map, "q_lora_rank", latent.q_rank, 0);
  need_size(map, "kv_lora_rank", "the rank of keys and values", latent.kv_rank);
  need_size(map, "qk_head_dim", "the head size without position", latent.nope_head_size);
  need_size(map, "qk_pos_emb_head_dim", "the head size with position", latent.rope_head_size);
  need_size(map, "v_head_dim", "the head size of values", latent.v_head_size);
  map.finish();
  model.latent = latent;
}

void read_experts(YamlMap& outer, Transformer& model) {
  const auto value = outer.find("moe");
  if (!value) return;
  YamlMap map(*value);
  Experts experts = model.experts.value_or(Experts{});
  need_size(map, "num_experts", "the number of experts", experts.num_experts);
  need_size(map, "router_topk", "the experts that a token passes", experts.experts_per_token);
  need_size(map, "ffn_hidden_size", "the size of an expert", experts.ffn_hidden_size);
  set_size(map, "shared_experts", experts.shared_experts, 0);
  set_size(map, "first_dense_layers", experts.first_dense_layers, 0);
  set_size(map, "last_dense_layers", experts.last_dense_layers, 0);
  set_size(map, "every", experts.every);
  set_size(map, "shared_ffn_hidden_size", experts.shared_ffn_hidden_size, 0);
  set_flag(map, "shared_gate", experts.shared_gate);
  set_size(map, "num_groups", experts.groups);
  set_size(map, "group_topk", experts.groups_per_token);
  set_flag(map, "router_bias", experts.router_bias);
  set_size(map, "latent_size", experts.latent_size, 0);
  if (const auto factor = map.find("capacity_factor")) {
    experts.capacity_factor = factor->number(0, experts.num_experts);
  }
  map.finish();
  model.experts = experts;
}

void read_attention(YamlMap& map, Transformer& model) {
  need_size(map, "num_attention_heads", "the number of attention heads", model.num_attention_heads);
  read_latent(map, model);
  set_size(map, "num_query_groups", model.num_query_groups);
  set_size(map, "kv_channels", model.kv_channels);
  set_size(map, "v_channels", model.v_channels, 0);
  set_size(map, "query_rank", model.q_rank, 0);
  set_flag(map, "values_are_keys", model.values_are_keys);
  if (model.latent) {  // has sizes of its own
    model.num_query_groups = 0;
    model.kv_channels = 0;
    return;
  }
  if (model.num_query_groups == 0) model.num_query_groups = model.num_attention_heads;
  if (model.kv_channels > 0) return;
  if (model.hidden_size % model.num_attention_heads != 0) {
    map.value().fail(
        fmt::format("hidden_size {} does not divide by num_attention_heads {}: give "
                    "'kv_channels'",
                    model.hidden_size, model.num_attention_heads));
  }
  model.kv_channels = model.hidden_size / model.num_attention_heads;
}

void check(const YamlValue& value, const Transformer& model) {
  if (const std::string fault = fault_of(model); !fault.empty()) value.fail(fault);
}

// Reads the map over the sizes of `model`; a size that is 0 there is required.
Transformer read_shape(YamlMap& map, Transformer model) {
  if (const auto name = map.find("name")) model.name = name->text();
  if (const auto source = map.find("source")) model.source = source->text();
  need_size(map, "num_layers", "the number of layers", model.num_layers);
  need_size(map, "hidden_size", "the hidden size", model.hidden_size);
  need_size(map, "vocab_size", "the size of the vocabulary", model.vocab_size);
  read_kinds(map, model);
  read_attention(map, model);
  if (model.ffn_hidden_size == 0 && !model.gated_mlp) model.ffn_hidden_size = 4 * model.hidden_size;
  need_size(map, "ffn_hidden_size", "the size of the MLP", model.ffn_hidden_size);
  read_mlp_sizes(map, model);
  set_size(map, "max_position_embeddings", model.max_position_embeddings);
  set_size(map, "mtp_num_layers", model.mtp_layers, 0);
  set_size(map, "residual_streams", model.residual_streams);
  set_size(map, "residual_block", model.residual_block, 0);
  read_experts(map, model);
  read_pattern(map, model);
  read_linear(map, model);
  read_sparse(map, model);
  read_compressed(map, model);
  read_window_heads(map, model);
  read_cross(map, model);
  read_encoder(map, model);
  map.finish();
  check(map.value(), model);
  return model;
}

YamlSource catalogue_source() {
  const std::string path = data_folder("catalog") + "/models.yaml";
  return YamlSource::from_file(path, {path, 0, 0, ""});
}

}  // namespace

std::vector<Transformer> read_models(const YamlValue& root) {
  std::vector<Transformer> models;
  for (const auto& [name, value] : root.entries()) {
    YamlMap map(value);
    Transformer start = family_defaults(map);
    start.name = name;
    models.push_back(read_shape(map, std::move(start)));
  }
  return models;
}

const std::vector<Transformer>& catalogue_models() {
  static const std::vector<Transformer> kModels = read_models(catalogue_source().root());
  return kModels;
}

std::vector<std::pair<std::string, std::string>> catalogue_entry(const std::string& name) {
  std::vector<std::pair<std::string, std::string>> keys;
  static const YamlSource kSource = catalogue_source();
  for (const auto& [model, shape] : kSource.root().entries()) {
    if (model != name) continue;
    for (const auto& [key, value] : shape.entries()) keys.emplace_back(key, value.one_line());
  }
  return keys;
}

Transformer find_model(const std::string& name, const Location& asked) {
  const auto& models = catalogue_models();
  const auto found = std::ranges::find(models, name, &Transformer::name);
  if (found != models.end()) return *found;
  // A Hugging Face id stands in the source.
  const auto source = std::ranges::find_if(models, [&name](const Transformer& model) {
    return name.find('/') != std::string::npos &&
           (model.source + " ").find(" " + name + " ") != std::string::npos;
  });
  if (source != models.end()) return *source;
  std::vector<std::string> names;
  for (const Transformer& model : models) names.push_back(model.name);
  // An id that stands nowhere: what is behind its owner, less what tells checkpoints apart.
  std::string short_name = name.substr(name.rfind('/') + 1);
  for (const std::string_view ending : {"-hf", "-Instruct", "-Base", "-base", "-instruct"}) {
    if (short_name.ends_with(ending)) short_name.resize(short_name.size() - ending.size());
  }
  const auto meant = std::ranges::find(models, meant_name(short_name, names), &Transformer::name);
  if (meant != models.end()) return *meant;
  const bool near = !suggested_names(short_name, names).empty();
  throw InputError(
      asked, fmt::format("model '{}' is not known{}", name,
                         near ? suggestion(short_name, names)
                              : "; `pipesim list models` prints their names, and a config.json is "
                                "read as it is"));
}

Transformer read_model(const YamlValue& value, const std::string& scenario_file) {
  if (value.is_scalar()) return find_model(value.text(), value.where());
  YamlMap map(value);
  if (const auto base = map.find("base")) {
    return read_shape(map, find_model(base->text(), base->where()));
  }
  if (const auto file = map.find("hf_config")) {
    std::vector<std::string> stated;
    for (const auto& [key, stands] : value.entries()) stated.push_back(key);
    return read_shape(
        map, read_hf_config_file(file_beside(scenario_file, file->text()), file->where(), stated));
  }
  if (const auto file = map.find("traced")) {
    Transformer model = read_traced_file(file_beside(scenario_file, file->text()), file->where());
    if (const auto name = map.find("name")) model.name = name->text();
    map.finish();
    return model;
  }
  Transformer start = family_defaults(map);
  return read_shape(map, std::move(start));
}

}  // namespace pipesim
