#include <cmath>

#include "models/work_builder.h"

namespace pipesim {
namespace {

constexpr std::int64_t kAligned = 8;  // elements of 16 bytes

}  // namespace

using enum RecomputeModule;

void WorkBuilder::attention_block() {
  norm(divided_, hidden_, kLayerNorm);
  if (model_.latent) {
    latent_projections();
  } else {
    plain_projections();
  }
  exchange_keys();
  core();
  linear({.name = "attention's output",
          .tokens = tokens_,
          .inputs = model_.num_attention_heads * v_head_size(model_) / ranks_,
          .outputs = hidden_,
          .bias = model_.linear_bias});
  after_divided();
  residual();
}

void WorkBuilder::plain_projections() {
  const double size = model_.kv_channels;
  const double heads = model_.num_attention_heads;
  const double groups = model_.num_query_groups;
  before_divided(hidden_);
  linear({.name = "queries, keys, values",
          .tokens = tokens_,
          .inputs = hidden_,
          .outputs = (heads + 2 * groups) * size / ranks_,
          .bias = model_.linear_bias || model_.qkv_bias});
  const double both = tokens_ * (heads + groups) * size / ranks_ * kElement;
  if (model_.positions == Positions::kRotary) {
    stream(PassKind::kF, 2 * both, 2);
    stream(PassKind::kB, 2 * both, 2);
  }
  if (model_.qk_norm) {
    stream(PassKind::kF, 2 * both, 2);
    stream(PassKind::kB, 3 * both, 2);
  }
}

void WorkBuilder::latent_projections() {
  const LatentAttention& latent = *model_.latent;
  const double compressed = latent.kv_rank + latent.rope_head_size;
  if (latent.q_rank > 0) {
    linear({.name = "queries, compressing",
            .tokens = divided_,
            .inputs = hidden_,
            .outputs = 1.0 * latent.q_rank});
    norm(divided_, latent.q_rank, kLatentNorm);
  }
  linear({.name = "keys and values, compressing",
          .tokens = divided_,
          .inputs = hidden_,
          .outputs = compressed});
  norm(divided_, latent.kv_rank, kLatentNorm);
  again(kLatentUp, &WorkBuilder::latent_up);
  latent_up();
}

void WorkBuilder::latent_up() {
  const LatentAttention& latent = *model_.latent;
  const double heads = model_.num_attention_heads / ranks_;
  const double qk = qk_head_size(model_);
  const double compressed = latent.kv_rank + latent.rope_head_size;
  before_divided(compressed + (latent.q_rank > 0 ? latent.q_rank : hidden_));
  linear({.name = "queries",
          .tokens = tokens_,
          .inputs = latent.q_rank > 0 ? latent.q_rank : hidden_,
          .outputs = heads * qk,
          .bias = model_.linear_bias});
  linear({.name = "keys and values",
          .tokens = tokens_,
          .inputs = 1.0 * latent.kv_rank,
          .outputs = heads * (latent.nope_head_size + latent.v_head_size),
          .bias = model_.linear_bias});
  // Positions are turned, and the parts of each query and key put together.
  const double both = 2 * tokens_ * heads * qk * kElement;
  stream(PassKind::kF, 2 * both, 3);
  stream(PassKind::kB, 2 * both, 3);
}

void WorkBuilder::exchange_keys() {
  if (context_.context == 1 || pass_ == PassKind::kW) return;
  const double groups = model_.latent ? model_.num_attention_heads : model_.num_query_groups;
  const double bytes = tokens_ * context_.context * groups / ranks_ *
                       (qk_head_size(model_) + v_head_size(model_)) * kElement;
  collective(CollectiveKind::kAllGather, Group::kContext, bytes);
  if (pass_ == PassKind::kB) collective(CollectiveKind::kReduceScatter, Group::kContext, bytes);
}

void WorkBuilder::core() {
  if (pass_ == PassKind::kW) return;
  const bool backward = pass_ == PassKind::kB;
  // A flash kernel rebuilds its scores anyway; with selective recompute its whole forward is run.
  if (backward && context_.recompute.any(kCoreAttention)) {
    context_.flash_attention ? fused_core(false) : plain_core(false);
  }
  context_.flash_attention ? fused_core(backward) : plain_core(backward);
}

void WorkBuilder::fused_core(bool backward) {
  const double heads = model_.num_attention_heads / ranks_;
  const double qk = qk_head_size(model_);
  const double v = v_head_size(model_);
  const double pairs = tokens_ * context_.seq_length * (context_.causal ? 0.5 : 1.0);
  const double depth = backward ? 3 * qk + 2 * v : qk + v;
  const double groups =
      (model_.latent ? model_.num_attention_heads : model_.num_query_groups) / ranks_;
  const double keys = tokens_ * context_.context * groups * (qk + v);
  const double queries = tokens_ * heads * (qk + v);  // and outputs
  work_.attention.push_back({Flops(2 * pairs * heads * depth),
                             Bytes((backward ? 2 : 1) * (keys + queries) * kElement),
                             qk_head_size(model_), backward});
}

void WorkBuilder::plain_core(bool backward) {
  const std::int64_t queries = context_.seq_length / context_.context;
  const std::int64_t keys = context_.seq_length;
  const std::int64_t qk = qk_head_size(model_);
  const std::int64_t v = v_head_size(model_);
  const double heads = context_.micro_batch_size * model_.num_attention_heads / ranks_;
  const std::int64_t batch = std::llround(heads);
  const double scores = heads * static_cast<double>(queries) * static_cast<double>(keys);
  const auto add = [&](const char* name, std::int64_t m, std::int64_t n, std::int64_t k) {
    Matmul matmul{m, n, k, batch};
    matmul.name = name;
    matmul.aligned = qk % kAligned == 0 && v % kAligned == 0;
    work_.matmuls.push_back(matmul);
  };
  if (backward) {
    add("probabilities' gradient", queries, keys, v);
    add("values' gradient", keys, v, queries);
    add("queries' gradient", queries, qk, keys);
    add("keys' gradient", keys, qk, queries);
  } else {
    add("scores", queries, keys, qk);
    add("values by scores", queries, v, keys);
  }
  // Softmax, and dropout with its mask.
  work_.moved += Bytes(scores * kElement * (backward ? 3 : 2));
  if (context_.dropout) work_.moved += Bytes(scores * (2 * kElement + 1));
  work_.kernels += context_.dropout ? 2 : 1;
}

}  // namespace pipesim
