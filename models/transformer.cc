#include "models/transformer.h"

#include <algorithm>
#include <array>
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
  if (experts.first_dense_layers > model.num_layers - experts.last_dense_layers) {
    return fmt::format("{} first and {} last dense layers, but only {} layers",
                       experts.first_dense_layers, experts.last_dense_layers, model.num_layers);
  }
  return "";
}

constexpr std::string_view kLetters = "GWRCSTHYXM*-E";

// The place among mlp_sizes, or -1.
int mlp_of_letter(char letter) {
  const int place = letter - 'a';
  return place >= 0 && place < kMlpSizes ? place : -1;
}

std::string fault_of_mlp_sizes(const Transformer& model) {
  for (const char letter : model.layer_pattern) {
    const int place = mlp_of_letter(letter);
    if (place < 0 || model.mlp_sizes[static_cast<size_t>(place)] > 0) continue;
    return fmt::format("{} in layer_pattern needs as many mlp_sizes, one for each letter from a on",
                       letter);
  }
  return "";
}

std::string fault_of_pattern(const Transformer& model) {
  const std::string& pattern = model.layer_pattern;
  const auto unknown = std::ranges::find_if(pattern, [](char letter) {
    return kLetters.find(letter) == std::string_view::npos && mlp_of_letter(letter) < 0;
  });
  if (unknown != pattern.end()) {
    return fmt::format("layer_pattern knows the letters {} and a to p, not '{}'", kLetters,
                       *unknown);
  }
  if (std::string fault = fault_of_mlp_sizes(model); !fault.empty()) return fault;
  const auto has = [&](const char* letters) {
    return pattern.find_first_of(letters) != std::string::npos;
  };
  struct Need {
    const char* letters;
    bool met;
    const char* fault;
  };
  const std::array needs{
      Need{"W", model.attention_window > 0, "W in layer_pattern needs attention_window"},
      Need{"ST", model.sparse.has_value(), "S and T in layer_pattern need sparse_attention"},
      Need{"RMH", model.linear.has_value(), "R, M and H in layer_pattern need linear_attention"},
      Need{"YX", model.compressed.has_value(),
           "Y and X in layer_pattern need compressed_attention"},
      Need{"X", model.sparse.has_value(), "X in layer_pattern needs sparse_attention, its indexer"},
      Need{"E", model.experts.has_value(), "E in layer_pattern needs moe"},
      Need{"C", !model.latent, "latent attention shares no keys: no C in layer_pattern"}};
  for (const Need& need : needs) {
    if (!need.met && has(need.letters)) return need.fault;
  }
  if (!has("WYX") && model.attention_window > 0) {
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

std::string fault_of_compressed(const Transformer& model) {
  const auto& compressed = model.compressed;
  if (!compressed) return "";
  if (model.latent || model.window_heads || model.num_query_groups != 1) {
    return "compressed_attention has one key for all heads: no mla, no window_attention, and "
           "num_query_groups 1";
  }
  if (model.attention_window < 1 ||
      model.layer_pattern.find_first_not_of("WYX") != std::string::npos) {
    return "compressed_attention needs attention_window, and layers W, Y and X alone";
  }
  if (compressed->q_rank < 1 || compressed->output_rank < 1 || compressed->ratio < 1 ||
      compressed->indexed_ratio < 1 || compressed->output_groups < 1 ||
      model.num_attention_heads % compressed->output_groups != 0) {
    return "compressed_attention needs ranks, ratios, and output_groups that divide the heads";
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

bool has_plain_attention(const Transformer& model) {
  return model.layer_pattern.empty() && !model.latent && model.q_rank == 0 &&
         !model.values_are_keys && model.v_channels == 0 && !model.output_gate &&
         !model.bidirectional;
}

std::string fault_of_cross(const Transformer& model) {
  const auto& cross = model.cross;
  if (!cross) return "";
  if (cross->encoder_layers < 1 || cross->encoder_layers >= model.num_layers) {
    return fmt::format("{} of {} layers cannot encode what the others attend to",
                       cross->encoder_layers, model.num_layers);
  }
  const bool plain = has_plain_attention(model) && !model.experts && !model.encoder &&
                     model.mtp_layers == 0 && residual_width(model) == model.hidden_size;
  return plain ? "" : "cross_attention is known beside plain attention and MLPs alone";
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
  using Kind = LinearAttention::Kind;
  const bool compresses = linear.kind == Kind::kMamba1 || linear.kind == Kind::kKda;
  if (compresses && linear.step_rank < 1) return "mamba1 and kda need step_rank";
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
  if (model.residual_streams > 1 && model.residual_block > 0) {
    return "a model has residual_streams or residual_block";
  }
  if (std::string fault = fault_of_encoder(model); !fault.empty()) return fault;
  if (std::string fault = fault_of_compressed(model); !fault.empty()) return fault;
  if (std::string fault = fault_of_cross(model); !fault.empty()) return fault;
  return fault_of_pattern(model);
}

LayerKind with_feed(LayerKind dense, LayerKind moe, bool experts) { return experts ? moe : dense; }

}  // namespace

double LinearAttention::scalars() const {
  switch (kind) {
    case Kind::kGatedDelta:
      return 2.0 * num_heads;
    case Kind::kMamba2:
      return num_heads;
    case Kind::kMamba1:  // a step a channel
      return values();
    case Kind::kKda:  // a decay a channel
      return num_heads + keys();
    case Kind::kLightning:
    case Kind::kShortConv:
      break;
  }
  return 0;
}

double LinearAttention::projected() const {
  if (kind == Kind::kMamba1) return 2 * values();
  if (kind == Kind::kShortConv) return 3 * values();
  const double gate = gate_rank > 0 ? 0 : values();
  const double heads = kind == Kind::kKda ? num_heads : scalars();
  return values() + gate + 2 * keys() + heads;
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

namespace {

struct KindParts {
  Mixer mixer = Mixer::kAttention;
  Feed feed = Feed::kMlp;
};

constexpr auto kPartsOfKinds = [] {
  EnumArray<LayerKind, KindParts> parts{
      {{{},  // kDense
        {Mixer::kAttention, Feed::kExperts},
        {},  // embedding, output, MTP and, behind those that are named here, the encoder: as kDense
        {},
        {},
        {Mixer::kWindow, Feed::kMlp},
        {Mixer::kWindow, Feed::kExperts},
        {Mixer::kLinear, Feed::kMlp},
        {Mixer::kLinear, Feed::kExperts},
        {Mixer::kSharedKeys, Feed::kMlp},
        {Mixer::kSharedKeys, Feed::kExperts},
        {Mixer::kSparse, Feed::kMlp},
        {Mixer::kSparse, Feed::kExperts},
        {Mixer::kFound, Feed::kMlp},
        {Mixer::kFound, Feed::kExperts},
        {Mixer::kBeside, Feed::kMlp},
        {Mixer::kBeside, Feed::kExperts},
        {Mixer::kCompressed, Feed::kMlp},
        {Mixer::kCompressed, Feed::kExperts},
        {Mixer::kIndexed, Feed::kMlp},
        {Mixer::kIndexed, Feed::kExperts},
        {Mixer::kLinear, Feed::kNone},  // alone
        {Mixer::kAttention, Feed::kNone},
        {Mixer::kNone, Feed::kMlp},
        {Mixer::kNone, Feed::kExperts}}}};
  const auto fill = [&parts](LayerKind first, LayerKind last, Feed feed) {
    for (auto i = static_cast<size_t>(first); i <= static_cast<size_t>(last); ++i) {
      parts[i] = {Mixer::kNone, feed};
    }
  };
  parts[LayerKind::kCross] = {Mixer::kCross, Feed::kMlp};
  fill(LayerKind::kMlpA, LayerKind::kMlpP, Feed::kMlp);
  fill(LayerKind::kTraced1, LayerKind::kTraced4, Feed::kNone);
  return parts;
}();

// The kinds that a letter means, without and with experts where these are not its own.
struct LetterKinds {
  char letter;
  LayerKind dense, moe;
};
constexpr std::array kKindsOfLetters{
    LetterKinds{'W', LayerKind::kWindowDense, LayerKind::kWindowMoe},
    LetterKinds{'R', LayerKind::kLinearDense, LayerKind::kLinearMoe},
    LetterKinds{'C', LayerKind::kSharedKeysDense, LayerKind::kSharedKeysMoe},
    LetterKinds{'S', LayerKind::kSparseDense, LayerKind::kSparseMoe},
    LetterKinds{'T', LayerKind::kFoundDense, LayerKind::kFoundMoe},
    LetterKinds{'H', LayerKind::kBesideDense, LayerKind::kBesideMoe},
    LetterKinds{'Y', LayerKind::kCompressedDense, LayerKind::kCompressedMoe},
    LetterKinds{'X', LayerKind::kIndexedDense, LayerKind::kIndexedMoe},
    LetterKinds{'M', LayerKind::kLinearAlone, LayerKind::kLinearAlone},
    LetterKinds{'*', LayerKind::kAttentionAlone, LayerKind::kAttentionAlone},
    LetterKinds{'-', LayerKind::kMlpAlone, LayerKind::kMlpAlone},
    LetterKinds{'E', LayerKind::kExpertsAlone, LayerKind::kExpertsAlone}};

}  // namespace

Mixer mixer_of(LayerKind kind) { return kPartsOfKinds[kind].mixer; }

Feed feed_of(LayerKind kind) { return kPartsOfKinds[kind].feed; }

LayerKind layer_kind(const Transformer& model, int layer) {
  if (model.traced) {
    const int block = model.traced->layers.at(static_cast<size_t>(layer));
    return static_cast<LayerKind>(static_cast<int>(LayerKind::kTraced1) + block);
  }
  if (model.cross) {
    return layer < model.cross->encoder_layers ? LayerKind::kBothWays : LayerKind::kCross;
  }
  const bool moe = model.experts && layer >= model.experts->first_dense_layers &&
                   layer < model.num_layers - model.experts->last_dense_layers &&
                   (layer - model.experts->first_dense_layers) % model.experts->every == 0;
  if (!model.layer_pattern.empty()) {
    const char letter =
        model.layer_pattern[static_cast<size_t>(layer) % model.layer_pattern.size()];
    if (const int place = mlp_of_letter(letter); place >= 0) {
      return static_cast<LayerKind>(static_cast<int>(LayerKind::kMlpA) + place);
    }
    const auto* kinds = std::ranges::find(kKindsOfLetters, letter, &LetterKinds::letter);
    if (kinds != kKindsOfLetters.end()) return with_feed(kinds->dense, kinds->moe, moe);
  }
  return with_feed(LayerKind::kDense, LayerKind::kMoe, moe);
}

// Where parts stand alone, a module has attention and its MLP or experts.
LayerKind mtp_layer_kind(const Transformer& model) {
  const int dense = model.experts ? model.experts->last_dense_layers : 0;
  const LayerKind last = layer_kind(model, std::max(0, model.num_layers - 1 - dense));
  if (last < LayerKind::kLinearAlone) return last;
  return with_feed(LayerKind::kDense, LayerKind::kMoe, model.experts.has_value());
}

int leading_layers(const Transformer& model) {
  if (model.cross) return model.cross->encoder_layers;
  return model.experts ? model.experts->first_dense_layers : model.num_layers;
}

KindCounts count_layers(const Transformer& model, int first, int layers) {
  KindCounts counts{};
  const bool alike =
      !model.traced && !model.cross && model.layer_pattern.empty() &&
      (!model.experts || (model.experts->every == 1 && model.experts->last_dense_layers == 0));
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
  counts[LayerKind::kDecoderEmbedding] = model.cross ? 1 : 0;
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

int mlp_size(const Transformer& model, LayerKind kind) {
  if (kind < LayerKind::kMlpA || kind > LayerKind::kMlpP) return model.ffn_hidden_size;
  const int place = static_cast<int>(kind) - static_cast<int>(LayerKind::kMlpA);
  return model.mlp_sizes[static_cast<size_t>(place)];
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
  const bool none = (model.values_are_keys && mixer != Mixer::kWindow) || model.compressed;
  heads.value_groups = none ? 0 : heads.groups;
  return heads;
}

namespace {

// Tokens among the last `window`, in the mean: the first of a sequence see fewer.
double mean_of_last(double window, double all, bool causal) {
  if (window >= all) return all * (causal ? 0.5 : 1.0);
  return causal ? window - window * window / (2 * all) : window;
}

}  // namespace

double mean_keys(const Transformer& model, Mixer mixer, int seq_length, bool causal) {
  const double all = seq_length;
  const double window = model.attention_window;
  if (const int ratio = compression(model, mixer); ratio > 0) {
    const double reach = mixer == Mixer::kIndexed ? 1.0 * ratio * model.sparse->topk : all;
    return mean_of_last(window, all, causal) + mean_of_last(reach, all, causal) / ratio;
  }
  if (is_sparse(mixer)) return mean_of_last(model.sparse->topk, all, causal);
  if (mixer != Mixer::kWindow) return all * (causal ? 0.5 : 1.0);
  if (model.chunked_window && window < all) {
    const double rest = all - std::floor(all / window) * window;
    return (window * (all - rest) + rest * rest) / all * (causal ? 0.5 : 1.0);
  }
  return mean_of_last(window, all, causal);
}

int compression(const Transformer& model, Mixer mixer) {
  if (mixer == Mixer::kCompressed) return model.compressed->ratio;
  return mixer == Mixer::kIndexed ? model.compressed->indexed_ratio : 0;
}

double compressed_width(const Transformer& model, Mixer mixer) {
  return (mixer == Mixer::kIndexed ? 2.0 : 1.0) * model.kv_channels;
}

double query_rank(const Transformer& model) {
  if (model.compressed) return model.compressed->q_rank;
  return model.latent && model.latent->q_rank > 0 ? model.latent->q_rank : model.hidden_size;
}

double indexer_keys(const Transformer& model) {
  // Stretches that overlap, of keys and of their weights.
  return (model.compressed ? 4.0 : 1.0) * model.sparse->head_size + model.sparse->num_heads;
}

double residual_sums(const Transformer& model) {
  if (model.residual_block == 0) return 0;
  const double blocks = std::ceil(1.0 * model.num_layers / model.residual_block);
  return (blocks + 1) / 2;
}

double residual_width(const Transformer& model) {
  return (model.residual_streams + residual_sums(model)) * model.hidden_size;
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
