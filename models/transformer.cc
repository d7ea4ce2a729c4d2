#include "models/transformer.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <string_view>

#include "models/traced.h"

namespace pipesim {
namespace {

std::string fault_of_experts(const Transformer& model) {
  const Experts& experts = *model.experts;
  if (experts.num_experts < 1 || experts.ffn_hidden_size < 1) {
    return "experts need num_experts and ffn_hidden_size";
  }
  if (experts.experts_per_token < 1 || experts.experts_per_token > experts.num_experts) {
    return fmt::format("a token cannot pass {} of {} experts", experts.experts_per_token,
                       experts.num_experts);
  }
  if (experts.every < 1 || experts.groups < 1 || experts.groups_per_token < 1 ||
      experts.num_experts % experts.groups != 0 || experts.groups_per_token > experts.groups) {
    return fmt::format("{} experts cannot stand in {} groups, {} of them a token's",
                       experts.num_experts, experts.groups, experts.groups_per_token);
  }
  if (experts.first_dense_layers > model.num_layers) {
    return fmt::format("{} first dense layers, but only {} layers", experts.first_dense_layers,
                       model.num_layers);
  }
  return "";
}

constexpr std::string_view kLetters = "GWRCSTM*-E";

std::string fault_of_pattern(const Transformer& model) {
  const std::string& pattern = model.layer_pattern;
  const size_t unknown = pattern.find_first_not_of(kLetters);
  if (unknown != std::string::npos) {
    return fmt::format("layer_pattern knows the letters {}, not '{}'", kLetters, pattern[unknown]);
  }
  const auto has = [&](const char* letters) {
    return pattern.find_first_of(letters) != std::string::npos;
  };
  if (has("W") && model.attention_window < 1) return "W in layer_pattern needs attention_window";
  if (has("ST") && !model.sparse) return "S and T in layer_pattern need sparse_attention";
  if (has("RM") && !model.linear) return "R and M in layer_pattern need linear_attention";
  if (has("E") && !model.experts) return "E in layer_pattern needs moe";
  if (has("C") && model.latent) return "latent attention shares no keys: no C in layer_pattern";
  if (!has("W") && model.attention_window > 0) {
    return "attention_window needs a layer_pattern with W, which says which layers have it";
  }
  return "";
}

std::string fault_of_heads(const Transformer& model) {
  if (const auto& sparse = model.sparse) {
    if (sparse->num_heads < 1 || sparse->head_size < 1 || sparse->topk < 1) {
      return "sparse_attention needs num_heads, head_size and topk";
    }
  }
  const auto& own = model.window_heads;
  if (!own) return "";
  if (model.latent) return "latent attention has one size of heads: no window_attention";
  if (own->num_attention_heads < 1 || own->num_query_groups < 1 || own->kv_channels < 1 ||
      own->num_attention_heads % own->num_query_groups != 0) {
    return "window_attention needs heads that divide into query groups";
  }
  return "";
}

std::string fault_of_encoder(const Transformer& model) {
  const auto& encoder = model.encoder;
  if (!encoder) return "";
  if (encoder->num_attention_heads < 1 ||
      encoder->hidden_size % encoder->num_attention_heads != 0 || encoder->merged < 1) {
    return "the encoder's hidden_size does not divide by its attention heads";
  }
  constexpr int kMostProjectors = 15;  // the room of Work::matmuls
  if (encoder->projectors > kMostProjectors) return "an encoder has at most 15 projectors";
  return "";
}

std::string fault_of_linear(const LinearAttention& linear) {
  if (linear.num_heads < 1 || linear.head_size < 1 || linear.key_heads < 1 ||
      linear.key_head_size < 1 || linear.chunk_size < 1) {
    return "linear_attention needs heads and sizes of values and keys";
  }
  if (linear.num_heads % linear.key_heads != 0) {
    return fmt::format("{} heads of linear attention do not divide into {} of keys",
                       linear.num_heads, linear.key_heads);
  }
  return "";
}

std::string fault_of_parts(const Transformer& model) {
  if (std::string fault = fault_of_heads(model); !fault.empty()) return fault;
  if (model.linear) {
    if (std::string fault = fault_of_linear(*model.linear); !fault.empty()) return fault;
  }
  if (model.rotary_percent < 0 || model.rotary_percent > 1) return "rotary_percent is from 0 to 1";
  if (model.bidirectional && (model.linear || model.sparse || model.mtp_layers > 0)) {
    return "bidirectional_attention is known of attention to all tokens or a window's alone";
  }
  if (std::string fault = fault_of_encoder(model); !fault.empty()) return fault;
  return fault_of_pattern(model);
}

LayerKind with_feed(LayerKind dense, LayerKind moe, bool experts) { return experts ? moe : dense; }

}  // namespace

double LinearAttention::projected() const {
  const double scalars = kind == Kind::kGatedDelta ? 2 : kind == Kind::kMamba2 ? 1 : 0;
  return 2 * values() + 2 * keys() + scalars * num_heads;
}

std::string fault_of(const Transformer& model) {
  if (model.num_layers < 1 || model.hidden_size < 1 || model.num_attention_heads < 1 ||
      model.vocab_size < 1 || model.ffn_hidden_size < 1) {
    return "a model needs layers, hidden size, attention heads, an MLP and a vocabulary";
  }
  if (!model.latent && (model.num_query_groups < 1 || model.kv_channels < 1)) {
    return "attention needs num_query_groups and kv_channels";
  }
  if (!model.latent && model.num_attention_heads % model.num_query_groups != 0) {
    return fmt::format("{} attention heads do not divide into {} query groups",
                       model.num_attention_heads, model.num_query_groups);
  }
  if (model.positions == Positions::kLearned && model.max_position_embeddings < 1) {
    return "learned positions need max_position_embeddings";
  }
  if (std::string fault = model.experts ? fault_of_experts(model) : ""; !fault.empty()) {
    return fault;
  }
  return fault_of_parts(model);
}

Mixer mixer_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::kWindowDense:
    case LayerKind::kWindowMoe:
      return Mixer::kWindow;
    case LayerKind::kLinearDense:
    case LayerKind::kLinearMoe:
    case LayerKind::kLinearAlone:
      return Mixer::kLinear;
    case LayerKind::kSharedKeysDense:
    case LayerKind::kSharedKeysMoe:
      return Mixer::kSharedKeys;
    case LayerKind::kSparseDense:
    case LayerKind::kSparseMoe:
      return Mixer::kSparse;
    case LayerKind::kFoundDense:
    case LayerKind::kFoundMoe:
      return Mixer::kFound;
    case LayerKind::kMlpAlone:
    case LayerKind::kExpertsAlone:
      return Mixer::kNone;
    default:
      if (is_traced(kind)) return Mixer::kNone;
      return Mixer::kAttention;
  }
}

Feed feed_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::kMoe:
    case LayerKind::kWindowMoe:
    case LayerKind::kLinearMoe:
    case LayerKind::kSharedKeysMoe:
    case LayerKind::kSparseMoe:
    case LayerKind::kFoundMoe:
    case LayerKind::kExpertsAlone:
      return Feed::kExperts;
    case LayerKind::kLinearAlone:
    case LayerKind::kAttentionAlone:
      return Feed::kNone;
    default:
      if (is_traced(kind)) return Feed::kNone;
      return Feed::kMlp;
  }
}

LayerKind layer_kind(const Transformer& model, int layer) {
  if (model.traced) {
    const int block = model.traced->layers.at(static_cast<size_t>(layer));
    return static_cast<LayerKind>(static_cast<int>(LayerKind::kTraced1) + block);
  }
  const bool moe = model.experts && layer >= model.experts->first_dense_layers &&
                   (layer - model.experts->first_dense_layers) % model.experts->every == 0;
  if (model.layer_pattern.empty()) return moe ? LayerKind::kMoe : LayerKind::kDense;
  switch (model.layer_pattern[static_cast<size_t>(layer) % model.layer_pattern.size()]) {
    case 'W':
      return with_feed(LayerKind::kWindowDense, LayerKind::kWindowMoe, moe);
    case 'R':
      return with_feed(LayerKind::kLinearDense, LayerKind::kLinearMoe, moe);
    case 'C':
      return with_feed(LayerKind::kSharedKeysDense, LayerKind::kSharedKeysMoe, moe);
    case 'S':
      return with_feed(LayerKind::kSparseDense, LayerKind::kSparseMoe, moe);
    case 'T':
      return with_feed(LayerKind::kFoundDense, LayerKind::kFoundMoe, moe);
    case 'M':
      return LayerKind::kLinearAlone;
    case '*':
      return LayerKind::kAttentionAlone;
    case '-':
      return LayerKind::kMlpAlone;
    case 'E':
      return LayerKind::kExpertsAlone;
    default:
      return with_feed(LayerKind::kDense, LayerKind::kMoe, moe);
  }
}

// Where parts stand alone, a module has attention and its MLP or experts.
LayerKind mtp_layer_kind(const Transformer& model) {
  const LayerKind last = layer_kind(model, model.num_layers - 1);
  if (last < LayerKind::kLinearAlone) return last;
  return with_feed(LayerKind::kDense, LayerKind::kMoe, model.experts.has_value());
}

int leading_layers(const Transformer& model) {
  return model.experts ? model.experts->first_dense_layers : model.num_layers;
}

KindCounts count_layers(const Transformer& model, int first, int layers) {
  KindCounts counts{};
  const bool alike =
      !model.traced && model.layer_pattern.empty() && (!model.experts || model.experts->every == 1);
  if (alike) {
    const int dense = std::clamp(leading_layers(model) - first, 0, layers);
    counts[LayerKind::kDense] = dense;
    counts[LayerKind::kMoe] = layers - dense;
    return counts;
  }
  for (int layer = first; layer < first + layers; ++layer) ++counts[layer_kind(model, layer)];
  return counts;
}

KindCounts count_all(const Transformer& model) {
  KindCounts counts = count_layers(model, 0, model.num_layers);
  counts[LayerKind::kEmbedding] = counts[LayerKind::kOutput] = 1;
  counts[LayerKind::kMtp] = model.mtp_layers;
  counts[LayerKind::kEncoder] = model.encoder ? model.encoder->num_layers : 0;
  return counts;
}

int moe_layers(const Transformer& model) {
  const KindCounts counts = count_layers(model, 0, model.num_layers);
  int number = 0;
  for (const LayerKind kind : kDecoderKinds) {
    if (feed_of(kind) == Feed::kExperts) number += counts[kind];
  }
  return number;
}

int qk_head_size(const Transformer& model) {
  return model.latent ? model.latent->nope_head_size + model.latent->rope_head_size
                      : model.kv_channels;
}

int v_head_size(const Transformer& model) {
  if (model.latent) return model.latent->v_head_size;
  return model.v_channels > 0 ? model.v_channels : model.kv_channels;
}

Heads heads_of(const Transformer& model, Mixer mixer) {
  Heads heads{.queries = 1.0 * model.num_attention_heads,
              .groups = 1.0 * (model.latent ? model.num_attention_heads : model.num_query_groups),
              .qk = 1.0 * qk_head_size(model),
              .v = 1.0 * v_head_size(model)};
  if (mixer == Mixer::kWindow && model.window_heads) {
    const WindowHeads& own = *model.window_heads;
    heads = {.queries = 1.0 * own.num_attention_heads,
             .groups = 1.0 * own.num_query_groups,
             .qk = 1.0 * own.kv_channels,
             .v = 1.0 * (own.v_channels > 0 ? own.v_channels : own.kv_channels)};
  }
  if (mixer == Mixer::kSharedKeys) heads.groups = 0;
  const bool none = model.values_are_keys && mixer != Mixer::kWindow;
  heads.value_groups = none ? 0 : heads.groups;
  return heads;
}

double mean_keys(const Transformer& model, Mixer mixer, int seq_length, bool causal) {
  const double all = seq_length;
  const double window = is_sparse(mixer) ? model.sparse->topk : model.attention_window;
  const bool whole = mixer != Mixer::kWindow && !is_sparse(mixer);
  if (whole || window >= all) return all * (causal ? 0.5 : 1.0);
  if (model.chunked_window && mixer == Mixer::kWindow) {
    const double rest = all - std::floor(all / window) * window;
    return (window * (all - rest) + rest * rest) / all * (causal ? 0.5 : 1.0);
  }
  // The first tokens of a sequence see fewer.
  return causal ? window - window * window / (2 * all) : window;
}

bool has_qkv_bias(const Transformer& model) {
  return model.linear_bias || model.qkv_bias || model.attention_bias;
}

bool has_output_bias(const Transformer& model) { return model.linear_bias || model.attention_bias; }

bool has_mlp_bias(const Transformer& model) { return model.linear_bias || model.mlp_bias; }

double shared_width(const Experts& experts) {
  const int one =
      experts.shared_ffn_hidden_size > 0 ? experts.shared_ffn_hidden_size : experts.ffn_hidden_size;
  return 1.0 * experts.shared_experts * one;
}

Transformer encoder_of(const Transformer& model) {
  const Encoder& encoder = *model.encoder;
  Transformer layers;
  layers.num_layers = encoder.num_layers;
  layers.hidden_size = encoder.hidden_size;
  layers.num_attention_heads = encoder.num_attention_heads;
  layers.num_query_groups = encoder.num_attention_heads;
  layers.kv_channels = encoder.hidden_size / encoder.num_attention_heads;
  layers.ffn_hidden_size = encoder.ffn_hidden_size;
  layers.gated_mlp = encoder.gated_mlp;
  layers.linear_bias = true;
  layers.norm = Norm::kLayerNorm;
  layers.positions = Positions::kLearned;
  return layers;
}

double encoder_tokens(const Encoder& encoder) { return 1.0 * encoder.patches * encoder.images; }

}  // namespace pipesim
