// A transformer's shape.
//
// A value, from which every cost and byte is computed; no function here changes it. The reader of
// models (sim/read/model.h) only lets through shapes of which `fault_of` finds nothing
// wrong; the functions here and in models/layer_work.h rely on that. All are O(1), throw nothing
// and allocate nothing, except where an error is put into words.
//
// Parameters of each part, h hidden, a heads, g key-value groups, d head size, f MLP size, V
// vocabulary, E experts (docs/reference/model.md, "Transformers"):
//   attention          h d (a + 2 g) + a d h, biases beside (Vaswani 2017; grouped queries: Ainslie
//                      2023). The 12 l h^2 (1 + 13/12h + (V + s)/12lh) of Narayanan 2021, section
//                      5.1, is this with g = a, f = 4h, biases, tied embeddings, s positions
//   latent attention   h q + q a (n + r) + h (c + r) + c a (n + v) + a v h, with ranks q and c, and
//                      head sizes n without and r with position, v of values (DeepSeek-V2,
//                      section 2.1)
//   MLP                2 h f, gated 3 h f (Shazeer 2020)
//   experts            E times an MLP of their size, a router of E h (Mixtral, DeepSeek-V3)
//   linear attention   h (2 v + 2 k + c a) + v h, with v and k the widths of all values and keys,
//                      and c numbers a head for the state's decay; a convolution of n (v + 2 k).
//                      KDA's decays are h r + r k of rank r (Kimi Linear, arXiv 2510.26692)
//   short convolution  4 h v, and a convolution of n v (LFM2)
//   cross attention    as attention, beside it, and a norm (Vaswani 2017, section 3.2.3)
//   queries' rank      h q + q + q d a in place of h d a (Step-3, arXiv 2507.19427)
//   Mamba-1            3 h v + v (r + 2 N) + r v + N v, with r the steps' rank, N numbers a channel
//                      of the state, and a convolution of n v (Gu and Dao 2023, arXiv 2312.00752)
//   compressed         h q + q a d + h d + a d o + g o h, with q the queries' rank, g groups of
//   attention          outputs of rank o; a compression 2 h d, of layers with an indexer 4 h d and
//                      the indexer's q i x + h i + 4 h x (DeepSeek-V4, arXiv 2606.19348)
//   residual streams   (n^2 + 2 n) n h before attention and MLP each, n^2 h before the output
//   norms              h each, with a bias 2 h: two a layer, four in Gemma 2, one before the output
//   embedding, output  V h each (one matrix when tied)
//   MTP module         a layer, a projection 2h -> h and three norms (DeepSeek-V3, section 2.2);
//                      its embedding and output are the model's own
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sim/core/enum_array.h"

namespace pipesim {

struct Traced;

enum class Norm : std::uint8_t { kLayerNorm, kRmsNorm, kLayerNormWithoutBias };
// kNone: ALiBi's have no cost. kRelative: a number a head for each bucket of distances (T5).
enum class Positions : std::uint8_t { kLearned, kRotary, kNone, kRelative };
inline constexpr int kRelativeBuckets = 32;
// Queries and keys are normalized per head, all heads of a token together, or without weights.
enum class QkNorm : std::uint8_t { kNone, kPerHead, kWhole, kWithoutWeights };

// The experts that replace one MLP in an MoE layer.
struct Experts {
  int num_experts = 0;
  int experts_per_token = 0;
  int shared_experts = 0;  // every token passes them; sizes as the routed ones
  int ffn_hidden_size = 0;
  int first_dense_layers = 0;      // layers before the first MoE layer
  int every = 1;                   // of the layers from there on, the first of so many has experts
  int last_dense_layers = 0;       // layers behind the last MoE layer
  int shared_ffn_hidden_size = 0;  // of one shared expert; 0: as the routed ones
  int groups = 1;                  // of experts, of which a token's stand in groups_per_token
  int groups_per_token = 1;
  bool router_bias = false;  // one number per expert, moved by load and not by a gradient
  bool shared_gate = false;  // a number per token weighs the shared experts
  // The width that routed experts work in, between two matrices; 0: the model's.
  int latent_size = 0;
  // An expert's tokens are padded and cut to so many times those of balanced routing; 0: neither.
  double capacity_factor = 0;

  // Experts that compute a token, padding counted.
  [[nodiscard]] double computed_per_token() const {
    return experts_per_token * (capacity_factor > 0 ? capacity_factor : 1);
  }

  friend bool operator==(const Experts&, const Experts&) = default;
};

// Multi-head latent attention: queries, keys and values come from compressed vectors.
struct LatentAttention {
  int q_rank = 0;  // 0: queries are not compressed
  int kv_rank = 0;
  int nope_head_size = 0;  // of queries and keys, without position
  int rope_head_size = 0;  // with position; one key of it serves all heads
  int v_head_size = 0;

  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

// Attention to the tokens that an indexer finds. Its small heads, which share one key, score every
// token. A query attends to the best.
struct SparseAttention {
  int num_heads = 0;
  int head_size = 0;
  int topk = 0;  // tokens that a query attends to

  friend bool operator==(const SparseAttention&, const SparseAttention&) = default;
};

// Attention over a window and, before it, over a few tokens in one. All heads share a key, which is
// its own value; queries and outputs are compressed. Layers Y see all tokens before. Layers X see
// those that an indexer finds, whose stretches overlap (DeepSeek-V4, arXiv 2606.19348, section 2).
struct CompressedAttention {
  int q_rank = 0;
  int output_groups = 0;  // parts of attention's output, each compressed by itself
  int output_rank = 0;    // of each
  int ratio = 0;          // tokens that become one in layers Y
  int indexed_ratio = 0;  // in layers X

  friend bool operator==(const CompressedAttention&, const CompressedAttention&) = default;
};

// The first layers encode a sequence, whose tokens see each other. The others decode another, and
// attend to the encoder's output too (Vaswani 2017; T5, arXiv 1910.10683, section 2.1).
struct CrossAttention {
  int encoder_layers = 0;
  int decoder_seq_length = 0;  // 0: as the encoder's

  friend bool operator==(const CrossAttention&, const CrossAttention&) = default;
};

// Heads of layers W where they are others than the model's.
struct WindowHeads {
  int num_attention_heads = 0;
  int num_query_groups = 0;
  int kv_channels = 0;
  int v_channels = 0;

  friend bool operator==(const WindowHeads&, const WindowHeads&) = default;
};

// Attention with a state of fixed size in place of all keys and values before.
struct LinearAttention {
  enum class Kind : std::uint8_t { kGatedDelta, kLightning, kMamba2, kMamba1, kKda, kShortConv };
  Kind kind = Kind::kGatedDelta;
  int num_heads = 0;  // of values
  int head_size = 0;
  int key_heads = 0;      // of queries and keys; Mamba's groups
  int key_head_size = 0;  // Mamba's state
  int conv_kernel = 0;    // tokens that the convolution before it sees; 0: there is none
  int chunk_size = 64;    // tokens among which all scores are made; Mamba-1: between kept states
  int step_rank = 0;      // of KDA's decays and Mamba-1's steps
  int gate_rank = 0;      // of KDA's gate; 0: it is not compressed

  [[nodiscard]] double values() const { return 1.0 * num_heads * head_size; }
  [[nodiscard]] double keys() const { return 1.0 * key_heads * key_head_size; }
  // Channels of the convolution: values, queries and keys. Mamba-1 makes its keys from these, and a
  // short convolution has none.
  [[nodiscard]] double convolved() const {
    const bool alone = kind == Kind::kMamba1 || kind == Kind::kShortConv;
    return values() + (alone ? 0 : 2 * keys());
  }
  // Numbers of a token that say how the state decays and is written.
  [[nodiscard]] double scalars() const;
  // The first projection's outputs: values, their gate, queries, keys, and numbers a head. A short
  // convolution's: values, and gates before and behind it.
  [[nodiscard]] double projected() const;

  friend bool operator==(const LinearAttention&, const LinearAttention&) = default;
};

// Layers of another width in front of the embedding, which make tokens of images or sound.
struct Encoder {
  int num_layers = 0;
  int hidden_size = 0;
  int num_attention_heads = 0;
  int ffn_hidden_size = 0;
  int inputs = 0;          // numbers of a patch
  int patches = 0;         // of an image
  int images = 1;          // of a sample
  int merged = 1;          // patches that become one token of the model
  int projector_size = 0;  // inner width of the projector's two matrices; 0: it is one matrix
  int projectors = 1;      // of them, each of which reads another layer's output (Qwen3-VL)
  bool gated_mlp = false;
  bool frozen = false;      // all but the projector: it has no gradients and no backward
  bool replicated = false;  // every tensor rank holds and runs all of it

  friend bool operator==(const Encoder&, const Encoder&) = default;
};

// Sizes that MLPs alone may have, one a letter from `a` on.
inline constexpr int kMlpSizes = 16;

struct Transformer {
  std::string name;
  std::string source;  // where the shape was published
  int num_layers = 0;
  int hidden_size = 0;
  int num_attention_heads = 0;
  int num_query_groups = 0;  // heads of keys and values
  int kv_channels = 0;       // head size; with latent attention its own sizes hold
  int v_channels = 0;        // head size of values; 0: as kv_channels
  int q_rank = 0;            // rank of queries, normalized there; 0: they are not compressed
  int ffn_hidden_size = 0;   // of dense layers
  std::array<int, kMlpSizes> mlp_sizes{};  // of layers `a`, `b`, ... of the pattern
  int vocab_size = 0;
  int max_position_embeddings = 0;  // rows of learned positions
  int mtp_layers = 0;               // modules that predict further tokens
  // Streams beside each other in place of one residual: hyper-connections.
  int residual_streams = 1;
  // Attention and MLP read a weighed sum of what each stretch of so many layers has added.
  // 0: they read the sum of all (Attention Residuals: Kimi K3).
  int residual_block = 0;
  bool gated_mlp = false;
  bool tied_embeddings = false;
  bool linear_bias = false;      // of all linear layers but the output and the router
  bool qkv_bias = false;         // of queries, keys and values alone
  bool attention_bias = false;   // of queries, keys, values and attention's output
  bool mlp_bias = false;         // of MLP and experts alone
  bool output_gate = false;      // attention's output is weighed by a projection of its input
  bool sinks = false;            // a score per head that belongs to no token
  bool values_are_keys = false;  // layers that see all tokens have no matrix of values
  bool rotary_in_windows_only = false;
  bool bidirectional = false;  // tokens attend to those behind them as well (BERT)
  bool post_norms = false;     // attention and MLP end in a norm too (Gemma 2)
  QkNorm qk_norm = QkNorm::kNone;
  double rotary_percent = 1;    // of a head that positions turn
  int attention_window = 0;     // tokens that a layer `W` of the pattern sees; 0: there is none
  bool chunked_window = false;  // those of its own stretch of so many, not the last so many
  // A letter a layer, repeated; empty: G. A layer with its MLP or experts:
  //   G  attention over all tokens
  //   W  attention over a window
  //   R  linear attention
  //   C  attention with the keys and values of the layer before
  //   S  sparse attention
  //   T  sparse attention to the tokens that the layer before found
  //   H  attention and linear attention beside each other
  //   Y  attention over a window and all tokens before, compressed
  //   X  the same, to those compressed tokens that an indexer finds
  // A layer by itself: M linear attention, * attention, - MLP, E experts, a to p MLP of mlp_sizes.
  std::string layer_pattern;
  Norm norm = Norm::kRmsNorm;
  Positions positions = Positions::kRotary;
  std::optional<Experts> experts;
  std::optional<LatentAttention> latent;
  std::optional<LinearAttention> linear;
  std::optional<SparseAttention> sparse;
  std::optional<CompressedAttention> compressed;
  std::optional<WindowHeads> window_heads;
  std::optional<CrossAttention> cross;
  std::optional<Encoder> encoder;
  // Blocks of a PyTorch model in place of layers: then the sizes of attention and MLP say nothing.
  std::shared_ptr<const Traced> traced;

  friend bool operator==(const Transformer&, const Transformer&) = default;
};

enum class LayerKind : std::uint8_t {
  kDense,
  kMoe,
  kEmbedding,
  kOutput,  // final norm, logits and loss
  kMtp,     // an MTP module up to its own logits, for which a kOutput more is run
  kWindowDense,
  kWindowMoe,
  kLinearDense,
  kLinearMoe,
  kSharedKeysDense,
  kSharedKeysMoe,
  kSparseDense,
  kSparseMoe,
  kFoundDense,
  kFoundMoe,
  kBesideDense,
  kBesideMoe,
  kCompressedDense,
  kCompressedMoe,
  kIndexedDense,
  kIndexedMoe,
  kLinearAlone,
  kAttentionAlone,
  kMlpAlone,
  kExpertsAlone,
  kMlpA,  // MLPs alone, of mlp_sizes
  kMlpB,
  kMlpC,
  kMlpD,
  kMlpE,
  kMlpF,
  kMlpG,
  kMlpH,
  kMlpI,
  kMlpJ,
  kMlpK,
  kMlpL,
  kMlpM,
  kMlpN,
  kMlpO,
  kMlpP,
  kEncoder,   // a layer of the encoder
  kBothWays,  // encodes, in front of layers with cross attention
  kCross,
  kDecoderEmbedding,  // the encoder's final norm, and the embedding of what is decoded
  kTraced1,           // a traced model's kinds of blocks
  kTraced2,
  kTraced3,
  kTraced4
};
template <>
inline constexpr std::size_t kSizeOf<LayerKind> = 49;
// True of the layers that the model's number counts: neither embeddings, output, MTP nor encoder.
constexpr bool is_decoder(LayerKind kind) {
  return kind != LayerKind::kEmbedding && kind != LayerKind::kOutput && kind != LayerKind::kMtp &&
         kind != LayerKind::kEncoder && kind != LayerKind::kDecoderEmbedding;
}
// In the order of the enumeration.
inline constexpr auto kDecoderKinds = [] {
  std::array<LayerKind, kSizeOf<LayerKind> - 5> kinds{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < kSizeOf<LayerKind>; ++i) {
    const auto kind = static_cast<LayerKind>(i);
    if (is_decoder(kind)) kinds[count++] = kind;
  }
  return kinds;
}();
inline constexpr int kTracedKinds = 4;
inline bool is_traced(LayerKind kind) { return kind >= LayerKind::kTraced1; }

// kFound: sparse attention to tokens that the layer before has found. kBeside: attention and
// linear attention. kCompressed and kIndexed: compressed attention's layers Y and X.
// Layers of kCross attend to earlier tokens, and then to the encoder's output.
enum class Mixer : std::uint8_t {
  kNone,
  kAttention,
  kWindow,
  kLinear,
  kSharedKeys,
  kSparse,
  kFound,
  kBeside,
  kCompressed,
  kIndexed,
  kCross
};
inline bool has_states(Mixer mixer) { return mixer == Mixer::kLinear || mixer == Mixer::kBeside; }
inline bool has_scores(Mixer mixer) { return mixer != Mixer::kNone && mixer != Mixer::kLinear; }
inline bool finds_tokens(Mixer mixer) {
  return mixer == Mixer::kSparse || mixer == Mixer::kIndexed;
}
inline bool is_sparse(Mixer mixer) { return mixer == Mixer::kSparse || mixer == Mixer::kFound; }
enum class Feed : std::uint8_t { kNone, kMlp, kExperts };
// In the order in which they stand.
inline constexpr auto kLayerKinds = [] {
  std::array<LayerKind, kSizeOf<LayerKind>> kinds{LayerKind::kEmbedding};
  std::size_t count = 1;
  for (const LayerKind kind : kDecoderKinds) kinds[count++] = kind;
  for (const LayerKind kind :
       {LayerKind::kMtp, LayerKind::kOutput, LayerKind::kEncoder, LayerKind::kDecoderEmbedding}) {
    kinds[count++] = kind;
  }
  return kinds;
}();
// The two parts of a decoder layer.
Mixer mixer_of(LayerKind kind);
Feed feed_of(LayerKind kind);
// True if full recompute runs it again: neither an embedding nor the output.
inline bool is_layer(LayerKind kind) {
  return kind != LayerKind::kEmbedding && kind != LayerKind::kOutput &&
         kind != LayerKind::kDecoderEmbedding;
}

// The fault of the shape, in words that name the keys of docs/reference/scenario.md; empty when it
// has none.
std::string fault_of(const Transformer& model);

// Layer `layer` in [0, num_layers).
LayerKind layer_kind(const Transformer& model, int layer);
// The kind of an MTP module's layer.
LayerKind mtp_layer_kind(const Transformer& model);
using KindCounts = EnumArray<LayerKind, int>;
// Decoder layers of each kind among `layers` from `first` on. O(1), with a pattern O(layers).
KindCounts count_layers(const Transformer& model, int first, int layers);
// Layers of the whole model by kind, ends included.
KindCounts count_all(const Transformer& model);
// How many layers have experts.
int moe_layers(const Transformer& model);
// Layers before the first that may have experts, or that decodes; all where none does.
int leading_layers(const Transformer& model);

// Size per head of query and key, and of value.
int qk_head_size(const Transformer& model);
int v_head_size(const Transformer& model);
// Heads of a layer's attention, those of its keys and values, and their sizes; shared keys have no
// groups. Latent attention has as many keys as heads.
struct Heads {
  double queries = 0;
  double groups = 0;
  double qk = 0;
  double v = 0;
  double value_groups = 0;  // with a matrix of their own
};
Heads heads_of(const Transformer& model, Mixer mixer);
// The size of a layer's MLP, where it has one.
int mlp_size(const Transformer& model, LayerKind kind);
// Tokens that become one in a layer of compressed attention; 0: none do.
int compression(const Transformer& model, Mixer mixer);
// Widths of the compressed tokens before they are weighed: twice a head's where stretches overlap.
double compressed_width(const Transformer& model, Mixer mixer);
// The rank of queries, or of what they are made of: the model's width.
double query_rank(const Transformer& model);
// The indexer's outputs of a token that are no queries: keys, what weighs these where tokens are
// compressed, and the heads' weights.
double indexer_keys(const Transformer& model);
// The width that a layer hands on: all streams, or the sums of earlier layers beside the last.
double residual_width(const Transformer& model);
// Sums of earlier layers that a layer weighs, in the mean; 0 without residual_block.
double residual_sums(const Transformer& model);
// The width that routed experts work in.
inline double expert_width(const Transformer& model) {
  const int latent = model.experts ? model.experts->latent_size : 0;
  return latent > 0 ? latent : model.hidden_size;
}
// Keys that a token of a sequence sees in the mean.
double mean_keys(const Transformer& model, Mixer mixer, int seq_length, bool causal);
bool has_qkv_bias(const Transformer& model);
bool has_output_bias(const Transformer& model);  // of attention's output
bool has_mlp_bias(const Transformer& model);
// Width of all shared experts together.
double shared_width(const Experts& experts);
// The encoder's layers, as a model of their width.
Transformer encoder_of(const Transformer& model);
double encoder_tokens(const Encoder& encoder);  // of a sample, in the encoder

}  // namespace pipesim
