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
//   latent attention   h q + q a (n + r) + h (c + r) + c a (n + v) + a v h, with ranks q and c,
//   head
//                      sizes n without and r with position, v of values (DeepSeek-V2, section 2.1)
//   MLP                2 h f, gated 3 h f (Shazeer 2020)
//   experts            E times an MLP of their size, a router of E h (Mixtral, DeepSeek-V3)
//   norms              h each, with a bias 2 h: two a layer, four in Gemma 2, one before the output
//   embedding, output  V h each (one matrix when tied)
//   MTP module         a layer, a projection 2h -> h and three norms (DeepSeek-V3, section 2.2);
//   its
//                      embedding and output are the model's own
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/core/enum_array.h"

namespace pipesim {

enum class Norm : std::uint8_t { kLayerNorm, kRmsNorm };
enum class Positions : std::uint8_t { kLearned, kRotary };

// What an MoE layer has in place of one MLP.
struct Experts {
  int num_experts = 0;
  int experts_per_token = 0;
  int shared_experts = 0;  // every token passes them; sizes as the routed ones
  int ffn_hidden_size = 0;
  int first_dense_layers = 0;  // layers before the first MoE layer
  bool router_bias = false;    // one number per expert, moved by load and not by a gradient

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

struct Transformer {
  std::string name;
  std::string source;  // where the shape was published
  int num_layers = 0;
  int hidden_size = 0;
  int num_attention_heads = 0;
  int num_query_groups = 0;  // heads of keys and values
  int kv_channels = 0;       // head size; with latent attention its own sizes hold
  int ffn_hidden_size = 0;   // of dense layers
  int vocab_size = 0;
  int max_position_embeddings = 0;  // rows of learned positions
  int mtp_layers = 0;               // modules that predict further tokens
  bool gated_mlp = false;
  bool tied_embeddings = false;
  bool linear_bias = false;  // of all linear layers but the output and the router
  bool qkv_bias = false;     // of queries, keys and values alone
  bool qk_norm = false;      // queries and keys are normalized per head
  bool post_norms = false;   // attention and MLP end in a norm too (Gemma 2)
  Norm norm = Norm::kRmsNorm;
  Positions positions = Positions::kRotary;
  std::optional<Experts> experts;
  std::optional<LatentAttention> latent;

  friend bool operator==(const Transformer&, const Transformer&) = default;
};

enum class LayerKind : std::uint8_t {
  kDense,
  kMoe,
  kEmbedding,
  kOutput,  // final norm, logits and loss
  kMtp      // an MTP module up to its own logits, for which a kOutput more is run
};
template <>
inline constexpr std::size_t kSizeOf<LayerKind> = 5;

// What is wrong with the shape, in words that name the keys of docs/reference/scenario.md; empty
// when nothing is.
std::string fault_of(const Transformer& model);

// Layer `layer` in [0, num_layers).
LayerKind layer_kind(const Transformer& model, int layer);
// The kind of an MTP module's layer.
LayerKind mtp_layer_kind(const Transformer& model);
int moe_layers(const Transformer& model);

// Of query and key, and of value: per head.
int qk_head_size(const Transformer& model);
int v_head_size(const Transformer& model);

}  // namespace pipesim
