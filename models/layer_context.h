// How a layer runs: the microbatch, over which ranks it is divided, and what the framework does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/offload_modules.h"
#include "models/recompute.h"
#include "models/transformer.h"
#include "models/work.h"

namespace pipesim {

// The exchange among ranks that divide a sequence, for attention, in Megatron-LM's words
// (cp_comm_type). `all_gather` gathers keys and values; `p2p` passes them on around a ring. `a2a`
// exchanges so that ranks divide heads. `a2a+p2p` does so among neighbours, and rings these groups.
enum class ContextExchange : std::uint8_t { kAllGather, kRing, kHeads, kHeadsAndRing };
inline constexpr std::array<std::string_view, 4> kContextExchanges{"all_gather", "p2p", "a2a",
                                                                   "a2a+p2p"};
constexpr std::string_view to_text(ContextExchange exchange) {
  return kContextExchanges[static_cast<size_t>(exchange)];
}

struct LayerContext {
  int micro_batch_size = 1;
  int seq_length = 0;
  // Tokens of each document in a microbatch of one packed sequence. Documents do not attend to each
  // other; the rest of the sequence is padding. Empty: every sequence is one document. Owned by
  // whoever made the context.
  std::span<const int> documents = {};
  // Images of the microbatch, in front of an encoder; by default every sequence has the model's
  // number.
  std::optional<int> images = {};
  // For a slice of a sequence of `whole` tokens: the tokens before it, to which it attends too.
  // Then seq_length counts the slice's own tokens, and `documents` the whole's. 0: no slice.
  int before = 0;
  int whole = 0;
  int encoded = 0;  // the encoder's tokens, once seq_length is a layer's own; 0: it is not yet
  int tensor = 1;
  bool sequence_parallel = false;  // norms and dropout on 1/tensor of the tokens (Korthikanti 2023)
  int context = 1;                 // ranks that divide a sequence
  ContextExchange exchange = ContextExchange::kAllGather;
  // The exchange of layers whose attention sees a window, where it differs from the rest's.
  std::optional<ContextExchange> window_exchange = {};
  // For kHeadsAndRing (hierarchical_context_parallel_sizes): ranks that divide heads, and ranks of
  // the ring; together the context ranks.
  std::array<int, 2> hierarchy{1, 1};
  // Before ranks divide heads, keys and values are repeated for every query head (MindSpeed's
  // kv_head_repeat_before_uly_alltoall), so that these ranks may outnumber key heads.
  bool repeats_keys = false;
  int expert = 1;         // ranks that divide the experts
  int expert_tensor = 1;  // ranks that divide each expert
  RecomputeGranularity recompute = {};
  RecomputedLayers recomputed_layers = {};  // of kFull
  // LoRA: adapters of this rank beside the linear layers train, and nothing else; 0: all does.
  int adapter_rank = 0;
  bool frozen = false;  // nothing behind the encoder trains: its projector does
  // Weights in fp32, which passes of 16 bits cast (torch.autocast, NeMo's megatron_amp_O2: false).
  bool fp32_weights = false;
  bool flash_attention = true;
  bool fused_gate = true;   // a gated activation is one kernel, which keeps no factor of a product
  bool causal = true;       // halves the work of flash attention; without it all scores are made
  bool dropout = false;     // after attention and MLP and in attention, with masks of a byte
  bool fused_loss = false;  // cross entropy reads the logits once and leaves their gradient there
  // Bytes of a logit that a loss holds at its peak: Megatron-LM's of 2023 the logits, an fp32 copy
  // and its difference from the maximum. Until B it keeps 4.
  double loss_bytes = 10;
  // Under sequence parallelism matrices divided by columns keep a gathered input from F until W.
  bool keeps_gathered = false;
  // Tokens go once to every node that has experts of theirs, and are handed on there (DeepEP,
  // HybridEP): Megatron's dispatcher `flex`. Without it once to every expert.
  bool flex_dispatcher = false;
  // Tokens go to the experts in fp8 with scales (moe_dispatch_fwd_dtype). So do the gradients of
  // returned tokens (moe_combine_bwd_dtype). Both are as in DeepSeek-V3 (arXiv 2412.19437, section
  // 3.3.3).
  bool fp8_dispatch = false;
  bool fp8_combine_gradient = false;
  bool fp8_activation_input = false;  // what an MLP keeps before its activation is in fp8
  // One copy of attention's output in so many bits serves attention's backward and the gradient of
  // its projection; 0: bf16, in fp8 beside a copy.
  int attention_output_bits = 0;
  OffloadModules offloaded = {};  // nothing where layers are recomputed whole
  // Pipeline devices that each hold a share of the embedding and the output; 0: they stand whole on
  // the first and the last stage.
  int vocabulary_devices = 0;
  // F of one microbatch runs beside BW of another, so that two layers run at a time.
  bool blocks = false;
  bool scatter_sends = false;   // tensor ranks send a part each and gather (Megatron's option)
  bool fp8_transposes = true;   // fp8 weights are kept transposed beside (models/gpu.h)
  bool fp8_parameters = false;  // weights are kept in fp8 alone (Megatron-LM's fp8_param_gather)
  Precision precision = Precision::kBf16;  // of the linear layers, router and output excepted
};

// The model's own matrices have gradients: neither adapters alone nor a projector train.
inline bool trains_model(const LayerContext& context) {
  return context.adapter_rank == 0 && !context.frozen;
}

// Layers that are not among those recomputed run other kernels in B, and keep other tensors.
inline bool recomputes_apart(const LayerContext& context) {
  const RecomputedLayers& layers = context.recomputed_layers;
  return !layers.all() && (context.recompute.of_modules() || layers.others.of_modules());
}
// How they run.
inline LayerContext context_of_others(const LayerContext& context) {
  LayerContext others = context;
  others.recompute = context.recomputed_layers.others;
  others.recomputed_layers = {};
  return others;
}

// A frozen encoder runs forward alone.
inline bool has_backward(const Transformer& model, LayerKind kind) {
  return kind != LayerKind::kEncoder || !model.encoder->frozen;
}

// The projector behind an encoder has a backward: it trains, or what is before it does.
inline bool projects_back(const Encoder& encoder, const LayerContext& context) {
  return !encoder.frozen || context.adapter_rank == 0;
}

// Bytes of a number that is in none of fewer bits: a weight, an activation, a message.
inline double element_bytes(const LayerContext& context) {
  return context.precision == Precision::kFp32 ? size_of(Precision::kFp32)
                                               : size_of(Precision::kBf16);
}

// Bytes of a weight that is kept in none of fewer bits, and of its gradient.
inline double weight_bytes(const LayerContext& context) {
  return context.fp32_weights ? size_of(Precision::kFp32) : element_bytes(context);
}

// Passes make 16-bit copies of weights in fp32; Transformer Engine keeps them from F to B.
inline bool casts_weights(const LayerContext& context) {
  return weight_bytes(context) > element_bytes(context) && !is_quantized(context.precision);
}

// Why the model cannot be divided like this, in words that name Megatron's sizes; empty when it
// can. The functions on layers require that it can.
std::string fault_of(const Transformer& model, const LayerContext& context);

// Tokens of a microbatch on a GPU: within attention and MLP, and where sequence parallelism has
// divided them further.
inline double layer_tokens(const LayerContext& context) {
  return 1.0 * context.micro_batch_size * context.seq_length / context.context;
}
inline double divided_tokens(const LayerContext& context) {
  return layer_tokens(context) / (context.sequence_parallel ? context.tensor : 1);
}
// The context of one kind of layer: what its context ranks exchange is its own. So are its tokens
// where some layers encode and others decode. A layer's own context comes back as it is.
LayerContext context_of(LayerKind kind, const Transformer& model, const LayerContext& context);
inline bool uses(const LayerContext& context, ContextExchange exchange) {
  return context.exchange == exchange || context.window_exchange == exchange;
}
// How each decoder layer's context ranks exchange, from the first on. O(layers).
std::vector<ContextExchange> exchanges_of_layers(const Transformer& model,
                                                 const LayerContext& context);

// Context ranks that divide heads within attention; the others divide the sequence.
int head_ranks(const LayerContext& context);
inline int sequence_ranks(const LayerContext& context) {
  return context.context / head_ranks(context);
}
// The heads of attention itself, whose keys and values may be repeated (repeats_keys) or another
// layer's.
Heads attending_heads(const Transformer& model, Mixer mixer, const LayerContext& context);
// Ranks that pass keys and values on from one to the next; 1: none do.
int ring_ranks(const LayerContext& context);
// Scores that a head makes of a microbatch on a GPU: pairs of a query and a key.
double attended_pairs(const Transformer& model, Mixer mixer, const LayerContext& context);
// Images of a microbatch. Requires a model with an encoder.
int images_of(const Transformer& model, const LayerContext& context);
// How the encoder's layers run: its own tokens, which see each other within an image, and whole
// on every context rank.
LayerContext encoder_context(const Transformer& model, const LayerContext& context);
// Rows that the experts of a GPU compute together, when every expert is as popular.
inline double expert_rows(const Transformer& model, const LayerContext& context) {
  return divided_tokens(context) * model.experts->computed_per_token() * context.expert_tensor;
}

}  // namespace pipesim
