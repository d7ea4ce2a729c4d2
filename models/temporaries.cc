#include "models/temporaries.h"

#include <algorithm>

#include "models/layer_work.h"
#include "models/traced_layer.h"

namespace pipesim {
namespace {

constexpr double kKeptOfLoss = 4;  // of a logit, its softmax in fp32

// A layer's parts, in bytes of one microbatch.
struct LayerParts {
  double scores = 0;     // one copy of attention's scores, 0 with flash attention
  double gradients = 0;  // of the MLP: at its output, after and before its activation
  double mlp = 0;        // what the MLP keeps, freed when backward comes to attention
  double residual = 0;
  double exchanged = 0;  // with other context ranks in attention's backward
};

// Gathered keys and values, and their gradients before they are scattered; of a ring two of both on
// their way; of heads an output and its gradient beside those that were divided by sequence.
double exchanged_bytes(const Heads& heads, const LayerContext& context) {
  if (context.context == 1) return 0;
  const double head = layer_tokens(context) / context.tensor * element_bytes(context);
  const double keys = head * heads.groups * (heads.qk + heads.v);
  double bytes = 0;
  if (context.exchange == ContextExchange::kAllGather) bytes += 2 * context.context * keys;
  if (ring_ranks(context) > 1) bytes += 4 * keys;
  if (head_ranks(context) > 1) bytes += 2 * head * heads.queries * heads.v;
  return bytes;
}

LayerParts parts_of(const Transformer& model, LayerKind kind, const LayerContext& context) {
  const double tokens = layer_tokens(context);
  const double halves = model.gated_mlp ? 2 : 1;
  LayerParts parts;
  parts.residual = divided_tokens(context) * model.hidden_size * element_bytes(context);
  double rows = tokens;
  const Feed feed = feed_of(kind);
  double inner = feed == Feed::kMlp ? tokens * mlp_size(model, kind) / context.tensor : 0.0;
  if (feed == Feed::kExperts) {
    rows = expert_rows(model, context);
    inner = rows * model.experts->ffn_hidden_size / context.expert_tensor +
            tokens * shared_width(*model.experts) / context.tensor;
  }
  const double width = feed == Feed::kExperts ? expert_width(model) : model.hidden_size;
  const double output = rows * width * element_bytes(context);
  parts.gradients = output + (1 + halves) * inner * element_bytes(context);
  parts.mlp = 2 * parts.residual +
              (context.dropout ? parts.residual / element_bytes(context) : 0.0) +
              (1 + halves) * inner * element_bytes(context);
  const Mixer mixer = mixer_of(kind);
  if (!has_scores(mixer)) return parts;
  const Heads heads = attending_heads(model, mixer, context);
  if (!context.flash_attention && !is_sparse(mixer) && !model.compressed) {
    const int keys =
        mixer == Mixer::kCross ? std::max(context.encoded, context.seq_length) : context.seq_length;
    parts.scores = tokens * keys * heads.queries / context.tensor * element_bytes(context);
  }
  parts.exchanged = exchanged_bytes(heads, context);
  return parts;
}

}  // namespace

Bytes temporaries(const Transformer& model, LayerKind kind, const LayerContext& context) {
  if (kind == LayerKind::kEmbedding || kind == LayerKind::kDecoderEmbedding) return Bytes(0);
  if (kind == LayerKind::kOutput) {
    if (context.vocabulary_devices > 0) return Bytes(0);
    return Bytes((context.loss_bytes - kKeptOfLoss) *
                 layer_tokens(context_of(kind, model, context)) * model.vocab_size /
                 context.tensor);
  }
  if (is_traced(kind)) return traced_temporaries(model, traced_block(model, kind), context);
  if (kind == LayerKind::kEncoder) {
    if (!has_backward(model, kind)) return Bytes(0);
    return temporaries(encoder_of(model), LayerKind::kDense, encoder_context(model, context));
  }
  const LayerParts parts = parts_of(model, kind == LayerKind::kMtp ? mtp_layer_kind(model) : kind,
                                    context_of(kind, model, context));
  // Backward in the MLP, and in attention where the scores are made: Megatron-LM holds a buffer of
  // their size all along, and gradients of them before and after dropout.
  const double in_mlp = parts.scores + parts.gradients;
  const double in_attention = parts.scores * 3 + parts.exchanged + parts.residual - parts.mlp;
  return Bytes(std::max(in_mlp, in_attention));
}

}  // namespace pipesim
