#include "models/layer_work.h"

#include <fmt/format.h>

#include "models/traced_layer.h"
#include "models/work_builder.h"
#include "sim/core/error.h"

namespace pipesim {

Work layer_work(const Transformer& model, LayerKind kind, PassKind pass,
                const LayerContext& context) {
  if (pass == PassKind::kBW || pass == PassKind::kFB) {
    throw LogicError(fmt::format("no work of one layer for pass {}", to_text(pass)));
  }
  if (kind == LayerKind::kEncoder) {
    if (images_of(model, context) == 0) return {};
    if (!has_backward(model, kind) && pass != PassKind::kF) return {};
    const Transformer encoder = encoder_of(model);
    const LayerContext beside = encoder_context(model, context);
    WorkBuilder builder(encoder, pass, beside);
    builder.layer(LayerKind::kDense);
    return builder.work();
  }
  if (is_traced(kind)) return traced_work(model, traced_block(model, kind), pass, context);
  const LayerContext own = context_of(kind, model, context);
  WorkBuilder builder(model, pass, own);
  switch (kind) {
    case LayerKind::kEmbedding:
      builder.embedding();
      break;
    case LayerKind::kDecoderEmbedding:
      builder.decoder_embedding();
      break;
    case LayerKind::kOutput:
      builder.output();
      break;
    case LayerKind::kMtp:
      builder.mtp_projection();
      builder.layer(mtp_layer_kind(model));
      break;
    default:
      builder.layer(kind);
      break;
  }
  return builder.work();
}

Work feed_work(const Transformer& model, LayerKind kind, PassKind pass,
               const LayerContext& context) {
  if (is_traced(kind)) return {};
  WorkBuilder builder(model, pass, context);
  builder.feed(kind == LayerKind::kMtp ? mtp_layer_kind(model) : kind);
  return builder.work();
}

Flops flops(const Work& work) {
  Flops sum;
  for (const Matmul& matmul : work.matmuls) sum += matmul.flops();
  for (const Attention& attention : work.attention) sum += attention.flops;
  return sum;
}

Flops model_flops(const Transformer& padded, int seq_length, bool causal,
                  const LayerContext& training) {
  Transformer model = padded;
  if (model.experts) model.experts->capacity_factor = 0;
  LayerContext whole;
  whole.seq_length = seq_length;
  whole.causal = causal;
  LayerContext context = whole;
  context.adapter_rank = training.adapter_rank;
  context.frozen = training.frozen;
  const auto third = [&](LayerKind kind) {
    const auto of = [&](PassKind pass, const LayerContext& trained) {
      return flops(layer_work(model, kind, pass, trained));
    };
    const Flops forward = of(PassKind::kF, context);
    if (!has_backward(model, kind)) return 1 / 3. * forward;
    if (kind == LayerKind::kEmbedding && (model.encoder->frozen || context.frozen)) {
      return 1 / 3. * (forward + of(PassKind::kB, context) + of(PassKind::kW, context));
    }
    const bool trains = kind == LayerKind::kEncoder && context.frozen;  // beside a frozen model
    if (trains || trains_model(context)) return forward;
    return forward - 1 / 3. * of(PassKind::kW, whole);
  };
  Flops sum = (1.0 + model.mtp_layers) * third(LayerKind::kOutput);
  const KindCounts counts = count_layers(model, 0, model.num_layers);
  for (const LayerKind kind : kDecoderKinds) {
    const int number = counts[kind];
    if (number > 0) sum += 1.0 * number * third(kind);
  }
  if (model.mtp_layers > 0) sum += 1.0 * model.mtp_layers * third(LayerKind::kMtp);
  if (model.encoder) {
    sum += third(LayerKind::kEmbedding);
    sum += 1.0 * model.encoder->num_layers * third(LayerKind::kEncoder);
  }
  return 3.0 * sum;
}

Flops forward_flops(const Transformer& model, const LayerContext& context) {
  const KindCounts counts = count_all(model);
  Flops sum;
  for (const LayerKind kind : kLayerKinds) {
    if (counts[kind] == 0) continue;
    sum += 1.0 * counts[kind] * flops(layer_work(model, kind, PassKind::kF, context));
  }
  return sum;
}

}  // namespace pipesim
