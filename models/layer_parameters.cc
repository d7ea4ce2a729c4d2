#include "models/layer_parameters.h"

#include "models/traced.h"
#include "models/traced_layer.h"

namespace pipesim {
namespace {

double norm_parameters(const Transformer& model, double width) {
  return (model.norm == Norm::kLayerNorm ? 2.0 : 1.0) * width;
}

// A linear layer with its bias; `input_ranks` divide its rows, `output_ranks` its columns.
void add_linear(LayerParameters& sum, double inputs, double outputs, bool bias, double input_ranks,
                double output_ranks) {
  const double matrix = inputs * outputs / (input_ranks * output_ranks);
  sum.dense += matrix + (bias ? outputs / output_ranks : 0.0);
  sum.matmul += matrix;
  sum.dense_sides += inputs / input_ranks + outputs / output_ranks;
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
  if (model.output_gate) add_linear(sum, h, heads * latent.v_head_size, false, 1, ranks);
  add_linear(sum, heads * latent.v_head_size, h, model.linear_bias, ranks, 1);
}

// Steps, and what goes into the state and comes out of it, from the channels themselves.
void add_selection(LayerParameters& sum, const LinearAttention& linear, double ranks) {
  const double channels = linear.values();
  const double state = linear.key_head_size;
  add_linear(sum, channels, linear.step_rank + 2 * state, false, ranks, 1);
  add_linear(sum, linear.step_rank, channels, true, 1, ranks);
  sum.dense += channels * (state + 1) / ranks;  // decays, and the input that passes by
}

// Decays of each channel, of a rank as the gate may be, and a decay and a norm that heads share.
void add_decays(LayerParameters& sum, const LinearAttention& linear, double h, double ranks) {
  add_linear(sum, h, linear.step_rank, false, 1, 1);
  add_linear(sum, linear.step_rank, linear.keys(), true, 1, ranks);
  if (linear.gate_rank > 0) {
    add_linear(sum, h, linear.gate_rank, false, 1, 1);
    add_linear(sum, linear.gate_rank, linear.values(), false, 1, ranks);
  }
  sum.dense += linear.num_heads / ranks + linear.head_size;
}

void add_linear_attention(LayerParameters& sum, const Transformer& model, double ranks) {
  const LinearAttention& linear = *model.linear;
  using Kind = LinearAttention::Kind;
  const double h = model.hidden_size;
  add_linear(sum, h, linear.projected(), false, 1, ranks);
  const double convolved = linear.convolved() / ranks;
  const bool mamba = linear.kind == Kind::kMamba1 || linear.kind == Kind::kMamba2;
  const bool bias = mamba && linear.conv_kernel > 0;
  sum.dense += convolved * (linear.conv_kernel + (bias ? 1 : 0));
  switch (linear.kind) {
    case Kind::kMamba1:
      add_selection(sum, linear, ranks);
      break;
    case Kind::kKda:
      add_decays(sum, linear, h, ranks);
      break;
    case Kind::kGatedDelta:  // a decay and a bias of the step a head, and a norm that heads share
      sum.dense += 2 * linear.num_heads / ranks + linear.head_size;
      break;
    case Kind::kMamba2:  // the input that passes by beside, a number a head
      sum.dense += (3 * linear.num_heads + linear.values()) / ranks;
      break;
    case Kind::kLightning:
      sum.dense += linear.values() / ranks;
      break;
    case Kind::kShortConv:
      break;
  }
  add_linear(sum, linear.values(), h, false, ranks, 1);
}

// Queries, a key, the heads' weights and the key's norm: whole on every rank.
void add_indexer(LayerParameters& sum, const Transformer& model) {
  const SparseAttention& indexer = *model.sparse;
  add_linear(sum, query_rank(model), 1.0 * indexer.num_heads * indexer.head_size, false, 1, 1);
  add_linear(sum, model.hidden_size, indexer_keys(model), false, 1, 1);
  sum.dense += 2.0 * indexer.head_size;
}

// Keys and what compresses them are whole on every rank. Places within a stretch have numbers too.
void add_compressed_attention(LayerParameters& sum, const Transformer& model, Mixer mixer,
                              double ranks) {
  const CompressedAttention& compressed = *model.compressed;
  const double h = model.hidden_size;
  const double heads = 1.0 * model.num_attention_heads * model.kv_channels;
  add_linear(sum, h, compressed.q_rank, false, 1, 1);
  add_linear(sum, compressed.q_rank, heads, false, 1, ranks);
  add_linear(sum, h, model.kv_channels, false, 1, 1);
  sum.dense +=
      norm_parameters(model, compressed.q_rank) + norm_parameters(model, model.kv_channels);
  if (const int ratio = compression(model, mixer); ratio > 0) {
    const double width = compressed_width(model, mixer);
    add_linear(sum, h, 2 * width, false, 1, 1);
    sum.dense += ratio * width + norm_parameters(model, model.kv_channels);
  }
  add_linear(sum, heads, compressed.output_rank, false, ranks, 1);
  add_linear(sum, 1.0 * compressed.output_groups * compressed.output_rank, h, false, ranks, 1);
}

// In front of attention or MLP: how streams are weighed, or a norm and a vector that weigh sums.
void add_residual(LayerParameters& sum, const Transformer& model) {
  const double n = model.residual_streams;
  const double h = model.hidden_size;
  if (n > 1) sum.dense += (n * n + 2 * n) * (n * h + 1) + 3;
  if (model.residual_block > 0) sum.dense += norm_parameters(model, h) + h;
}

// In front of the output.
void add_end_of_residual(LayerParameters& sum, const Transformer& model) {
  const double n = model.residual_streams;
  if (n > 1) sum.dense += n * (n * model.hidden_size + 1) + 1;
  if (model.residual_block > 0) add_residual(sum, model);
}

void add_attention(LayerParameters& sum, const Transformer& model, Mixer mixer, double ranks) {
  const double h = model.hidden_size;
  sum.dense += (model.post_norms ? 2 : 1) * norm_parameters(model, model.hidden_size);
  if (has_states(mixer)) add_linear_attention(sum, model, ranks);
  if (!has_scores(mixer)) return;
  const Heads heads = heads_of(model, mixer);
  if (model.sinks) sum.dense += heads.queries / ranks;
  if (finds_tokens(mixer)) add_indexer(sum, model);
  if (model.compressed) return add_compressed_attention(sum, model, mixer, ranks);
  if (model.latent) return add_latent_attention(sum, model, ranks);
  const double queries = heads.qk * heads.queries;
  double outputs = queries + heads.qk * heads.groups + heads.v * heads.value_groups +
                   (model.output_gate ? heads.v * heads.queries : 0);
  if (model.q_rank > 0) {
    add_linear(sum, h, model.q_rank, false, 1, 1);
    sum.dense += norm_parameters(model, model.q_rank);
    add_linear(sum, model.q_rank, queries, has_qkv_bias(model), 1, ranks);
    outputs -= queries;
  }
  add_linear(sum, h, outputs, has_qkv_bias(model), 1, ranks);
  if (model.qk_norm == QkNorm::kPerHead) sum.dense += 2 * norm_parameters(model, heads.qk);
  if (model.qk_norm == QkNorm::kWhole) {
    sum.dense += norm_parameters(model, 1) * heads.qk * (heads.queries + heads.groups) / ranks;
  }
  add_linear(sum, heads.queries * heads.v, h, has_output_bias(model), ranks, 1);
}

// The second attention of a layer that decodes.
void add_cross_attention(LayerParameters& sum, const Transformer& model, double ranks) {
  const double h = model.hidden_size;
  const Heads heads = heads_of(model, Mixer::kCross);
  sum.dense += (model.post_norms ? 2 : 1) * norm_parameters(model, h);
  add_linear(sum, h, heads.qk * heads.queries, has_qkv_bias(model), 1, ranks);
  add_linear(sum, h, (heads.qk + heads.v) * heads.groups, has_qkv_bias(model), 1, ranks);
  add_linear(sum, heads.queries * heads.v, h, has_output_bias(model), ranks, 1);
}

void add_mlp(LayerParameters& sum, const Transformer& model, double h, double ffn, double ranks) {
  add_linear(sum, h, (model.gated_mlp ? 2 : 1) * ffn, has_mlp_bias(model), 1, ranks);
  add_linear(sum, ffn, h, has_mlp_bias(model), ranks, 1);
}

void add_experts(LayerParameters& sum, const Transformer& model, const WeightDivision& division) {
  const Experts& experts = *model.experts;
  const double sides = sum.dense_sides;
  add_linear(sum, model.hidden_size, experts.num_experts, experts.router_bias, 1, 1);
  sum.dense_sides = sides;
  if (experts.shared_experts > 0) {
    add_mlp(sum, model, model.hidden_size, shared_width(experts), division.tensor);
    if (experts.shared_gate) sum.dense += model.hidden_size;
  }
  LayerParameters one;
  add_mlp(one, model, expert_width(model), experts.ffn_hidden_size, division.expert_tensor);
  if (experts.latent_size > 0) {
    add_linear(sum, model.hidden_size, experts.latent_size, false, 1, 1);
    add_linear(sum, experts.latent_size, model.hidden_size, false, 1, 1);
  }
  const double held = 1.0 * experts.num_experts / division.expert;
  sum.expert += held * one.dense;
  sum.matmul += held * one.matmul;
  sum.expert_sides += held * one.dense_sides;
}

void add_layer(LayerParameters& sum, const Transformer& model, LayerKind kind,
               const WeightDivision& division) {
  const Mixer mixer = mixer_of(kind);
  const Feed feed = feed_of(kind);
  if (mixer != Mixer::kNone) {
    add_residual(sum, model);
    add_attention(sum, model, mixer, division.tensor);
    if (mixer == Mixer::kCross) add_cross_attention(sum, model, division.tensor);
  }
  if (feed == Feed::kNone) return;
  add_residual(sum, model);
  sum.dense += (model.post_norms ? 2 : 1) * norm_parameters(model, model.hidden_size);
  if (feed == Feed::kExperts) {
    add_experts(sum, model, division);
  } else {
    add_mlp(sum, model, model.hidden_size, mlp_size(model, kind), division.tensor);
  }
}

// Positions' parameters beside an embedding, whole on every rank.
double position_parameters(const Transformer& model) {
  switch (model.positions) {
    case Positions::kLearned:
      return 1.0 * model.max_position_embeddings * model.hidden_size;
    case Positions::kRelative:
      return 1.0 * kRelativeBuckets * model.num_attention_heads;
    case Positions::kRotary:
    case Positions::kNone:
      break;
  }
  return 0;
}

// The encoder's way in, positions and last norm.
double encoder_ends(const Encoder& encoder) {
  const double h = encoder.hidden_size;
  return h * (encoder.inputs + encoder.patches) + 2 * h;
}

// From the encoder's width to the model's.
double projector_parameters(const Transformer& model) {
  const Encoder& encoder = *model.encoder;
  const double merged = 1.0 * encoder.hidden_size * encoder.merged;
  const double inner = encoder.projector_size;
  return encoder.projectors *
         (inner > 0 ? inner * (merged + model.hidden_size) : merged * model.hidden_size);
}

LayerParameters traced_parameters(const TracedBlock& block, const WeightDivision& division) {
  const double experts = 1.0 * division.expert * division.expert_tensor;
  const TracedParameters& all = block.parameters;
  const TracedParameters& matrices = block.matrices;
  LayerParameters sum;
  sum.dense = all.whole + all.tensor / division.tensor;
  sum.expert = all.experts / experts;
  sum.matmul = matrices.whole + matrices.tensor / division.tensor + matrices.experts / experts;
  return sum;
}

}  // namespace

double shared_embedding(const Transformer& model, int tensor) {
  const double learned = model.positions == Positions::kLearned ? position_parameters(model) : 0;
  return 1.0 * model.vocab_size * model.hidden_size / tensor + learned;
}

LayerParameters layer_parameters(const Transformer& model, LayerKind kind,
                                 const WeightDivision& division) {
  if (is_traced(kind)) return traced_parameters(traced_block(model, kind), division);
  LayerParameters sum;
  const double h = model.hidden_size;
  switch (kind) {
    default:
      add_layer(sum, model, kind, division);
      break;
    case LayerKind::kEncoder:
      add_layer(sum, encoder_of(model), LayerKind::kDense,
                {model.encoder->replicated ? 1 : division.tensor, 1, 1});
      break;
    case LayerKind::kEmbedding:
      sum.dense += 1.0 * model.vocab_size / division.tensor * h;
      sum.dense += position_parameters(model);
      if (model.encoder) sum.dense += encoder_ends(*model.encoder) + projector_parameters(model);
      if (model.traced) sum.dense += model.traced->other_parameters;
      break;
    case LayerKind::kDecoderEmbedding:
      sum.dense += 1.0 * model.vocab_size / division.tensor * h + position_parameters(model) +
                   norm_parameters(model, h);
      break;
    case LayerKind::kOutput:
      sum.dense += norm_parameters(model, model.hidden_size);
      add_linear(sum, h, model.vocab_size, false, 1, division.tensor);
      sum.dense_sides = 0;
      add_end_of_residual(sum, model);
      break;
    case LayerKind::kMtp:
      sum.dense += 3 * norm_parameters(model, model.hidden_size);
      add_linear(sum, 2 * h, h, false, 1, division.tensor);
      add_layer(sum, model, mtp_layer_kind(model), division);
      break;
  }
  return sum;
}

LayerParameters trained_parameters(const Transformer& model, LayerKind kind,
                                   const LayerParameters& held, const LayerContext& context) {
  if (!has_backward(model, kind)) return {};
  if (const int rank = context.adapter_rank; rank > 0) {
    return {.dense = rank * held.dense_sides, .expert = rank * held.expert_sides};
  }
  if (kind == LayerKind::kEncoder) return held;
  LayerParameters trained = context.frozen ? LayerParameters{} : held;
  if (kind != LayerKind::kEmbedding || !model.encoder) return trained;
  const double ends = encoder_ends(*model.encoder);
  if (context.frozen) trained.dense = projector_parameters(model) + ends;
  if (model.encoder->frozen) trained.dense -= ends;
  return trained;
}

namespace {

double unused_parameters(const Transformer& model, LayerKind kind) {
  const LayerKind layer = kind == LayerKind::kMtp ? mtp_layer_kind(model) : kind;
  const bool has_experts = feed_of(layer) == Feed::kExperts || (is_traced(layer) && model.experts);
  if (!is_layer(layer) || !has_experts) return 0;
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
  const double tied = model.tied_embeddings ? 1.0 * model.vocab_size * model.hidden_size : 0;
  double sum = 0;
  const KindCounts counts = count_layers(model, 0, model.num_layers);
  for (const LayerKind kind : kDecoderKinds) {
    const int number = counts[kind];
    if (number > 0) sum += number * parameters(model, kind);
  }
  sum += parameters(model, LayerKind::kEmbedding) + parameters(model, LayerKind::kOutput) - tied;
  if (model.encoder) sum += model.encoder->num_layers * parameters(model, LayerKind::kEncoder);
  if (model.cross) {
    sum += parameters(model, LayerKind::kDecoderEmbedding) - shared_embedding(model, 1);
  }
  return sum;
}

double total_activated_parameters(const Transformer& model) {
  double sum = total_parameters(model);
  const KindCounts counts = count_layers(model, 0, model.num_layers);
  for (const LayerKind kind : kDecoderKinds) {
    const int number = counts[kind];
    if (number > 0) sum -= number * unused_parameters(model, kind);
  }
  return sum;
}

double mtp_parameters(const Transformer& model) {
  return model.mtp_layers > 0 ? model.mtp_layers * parameters(model, LayerKind::kMtp) : 0.0;
}

}  // namespace pipesim
