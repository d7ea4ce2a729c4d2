#include "models/layer_work.h"

#include <fmt/format.h>

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
    const Transformer encoder = encoder_of(model);
    const LayerContext beside = encoder_context(model, context);
    WorkBuilder builder(encoder, pass, beside);
    builder.layer(LayerKind::kDense);
    return builder.work();
  }
  const LayerContext own = context_of(kind, model, context);
  WorkBuilder builder(model, pass, own);
  switch (kind) {
    case LayerKind::kEmbedding:
      builder.embedding();
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

Flops model_flops(const Transformer& model, int seq_length, bool causal) {
  LayerContext context;
  context.seq_length = seq_length;
  context.causal = causal;
  const auto forward = [&](LayerKind kind) {
    return flops(layer_work(model, kind, PassKind::kF, context));
  };
  Flops sum = (1.0 + model.mtp_layers) * forward(LayerKind::kOutput);
  const KindCounts counts = count_layers(model, 0, model.num_layers);
  for (const LayerKind kind : kDecoderKinds) {
    const int number = counts[kind];
    if (number > 0) sum += 1.0 * number * forward(kind);
  }
  if (model.mtp_layers > 0) sum += 1.0 * model.mtp_layers * forward(LayerKind::kMtp);
  if (model.encoder) {
    sum += forward(LayerKind::kEmbedding);
    sum += 1.0 * model.encoder->num_layers * forward(LayerKind::kEncoder);
  }
  return 3.0 * sum;
}

}  // namespace pipesim
