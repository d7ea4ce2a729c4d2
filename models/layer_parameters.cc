#include "models/layer_parameters.h"

namespace pipesim {
namespace {

double norm_parameters(const Transformer& model, int width) {
  return (model.norm == Norm::kLayerNorm ? 2.0 : 1.0) * width;
}

// A linear layer with its bias; `input_ranks` divide its rows, `output_ranks` its columns.
void add_linear(LayerParameters& sum, double inputs, double outputs, bool bias, double input_ranks,
                double output_ranks) {
  const double matrix = inputs * outputs / (input_ranks * output_ranks);
  sum.dense += matrix + (bias ? outputs / output_ranks : 0.0);
  sum.matmul += matrix;
}

void add_latent_attention(LayerParameters& sum, const Transformer& model, double ranks) {
  const LatentAttention& latent = *model.latent;
  const double h = model.hidden_size;
  const double heads = model.num_attention_heads;
  const double qk = latent.nope_head_size + latent.rope_head_size;
  if (latent.q_rank > 0) {
    add_linear(sum, h, latent.q_rank, false, 1, 1);
    sum.dense += norm_parameters(model, latent.q_rank);
    add_linear(sum, latent.q_rank, heads * qk, model.linear_bias, 1, ranks);
  } else {
    add_linear(sum, h, heads * qk, model.linear_bias, 1, ranks);
  }
  add_linear(sum, h, latent.kv_rank + latent.rope_head_size, false, 1, 1);
  sum.dense += norm_parameters(model, latent.kv_rank);
  add_linear(sum, latent.kv_rank, heads * (latent.nope_head_size + latent.v_head_size),
             model.linear_bias, 1, ranks);
  add_linear(sum, heads * latent.v_head_size, h, model.linear_bias, ranks, 1);
}

void add_attention(LayerParameters& sum, const Transformer& model, double ranks) {
  const double h = model.hidden_size;
  sum.dense += (model.post_norms ? 2 : 1) * norm_parameters(model, model.hidden_size);
  if (model.latent) {
    add_latent_attention(sum, model, ranks);
    return;
  }
  const double size = model.kv_channels;
  const double heads = model.num_attention_heads;
  const double qkv = size * (heads + 2.0 * model.num_query_groups);
  add_linear(sum, h, qkv, model.linear_bias || model.qkv_bias, 1, ranks);
  if (model.qk_norm) sum.dense += 2 * norm_parameters(model, model.kv_channels);
  add_linear(sum, heads * size, h, model.linear_bias, ranks, 1);
}

void add_mlp(LayerParameters& sum, const Transformer& model, double ffn, double ranks) {
  const double h = model.hidden_size;
  add_linear(sum, h, (model.gated_mlp ? 2 : 1) * ffn, model.linear_bias, 1, ranks);
  add_linear(sum, ffn, h, model.linear_bias, ranks, 1);
}

void add_experts(LayerParameters& sum, const Transformer& model, const WeightDivision& division) {
  const Experts& experts = *model.experts;
  add_linear(sum, model.hidden_size, experts.num_experts, experts.router_bias, 1, 1);
  if (experts.shared_experts > 0) {
    add_mlp(sum, model, 1.0 * experts.shared_experts * experts.ffn_hidden_size, division.tensor);
  }
  LayerParameters one;
  add_mlp(one, model, experts.ffn_hidden_size, division.expert_tensor);
  const double held = 1.0 * experts.num_experts / division.expert;
  sum.expert += held * one.dense;
  sum.matmul += held * one.matmul;
}

void add_layer(LayerParameters& sum, const Transformer& model, LayerKind kind,
               const WeightDivision& division) {
  add_attention(sum, model, division.tensor);
  sum.dense += (model.post_norms ? 2 : 1) * norm_parameters(model, model.hidden_size);
  if (kind == LayerKind::kMoe) {
    add_experts(sum, model, division);
  } else {
    add_mlp(sum, model, model.ffn_hidden_size, division.tensor);
  }
}

}  // namespace

LayerParameters layer_parameters(const Transformer& model, LayerKind kind,
                                 const WeightDivision& division) {
  LayerParameters sum;
  const double h = model.hidden_size;
  switch (kind) {
    case LayerKind::kDense:
    case LayerKind::kMoe:
      add_layer(sum, model, kind, division);
      break;
    case LayerKind::kEmbedding:
      sum.dense += 1.0 * model.vocab_size / division.tensor * h;
      if (model.positions == Positions::kLearned) sum.dense += model.max_position_embeddings * h;
      break;
    case LayerKind::kOutput:
      sum.dense += norm_parameters(model, model.hidden_size);
      add_linear(sum, h, model.vocab_size, false, 1, division.tensor);
      break;
    case LayerKind::kMtp:
      sum.dense += 3 * norm_parameters(model, model.hidden_size);
      add_linear(sum, 2 * h, h, false, 1, division.tensor);
      add_layer(sum, model, mtp_layer_kind(model), division);
      break;
  }
  return sum;
}

namespace {

double unused_parameters(const Transformer& model, LayerKind kind) {
  const bool moe = kind == LayerKind::kMoe ||
                   (kind == LayerKind::kMtp && mtp_layer_kind(model) == LayerKind::kMoe);
  if (!moe) return 0;
  const Experts& experts = *model.experts;
  const double one = layer_parameters(model, kind, {}).expert / experts.num_experts;
  return one * (experts.num_experts - experts.experts_per_token);
}

}  // namespace

double parameters(const Transformer& model, LayerKind kind) {
  const LayerParameters sum = layer_parameters(model, kind, {});
  return sum.dense + sum.expert;
}

double activated_parameters(const Transformer& model, LayerKind kind) {
  return parameters(model, kind) - unused_parameters(model, kind);
}

double total_parameters(const Transformer& model) {
  const double moe = moe_layers(model);
  const double dense = model.num_layers - moe;
  const double tied = model.tied_embeddings ? 1.0 * model.vocab_size * model.hidden_size : 0;
  return (dense > 0 ? dense * parameters(model, LayerKind::kDense) : 0.0) +
         (moe > 0 ? moe * parameters(model, LayerKind::kMoe) : 0.0) +
         parameters(model, LayerKind::kEmbedding) + parameters(model, LayerKind::kOutput) - tied;
}

double total_activated_parameters(const Transformer& model) {
  const double moe = moe_layers(model);
  return total_parameters(model) -
         (moe > 0 ? moe * unused_parameters(model, LayerKind::kMoe) : 0.0);
}

double mtp_parameters(const Transformer& model) {
  return model.mtp_layers > 0 ? model.mtp_layers * parameters(model, LayerKind::kMtp) : 0.0;
}

}  // namespace pipesim
