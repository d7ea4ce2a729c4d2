#include <algorithm>
#include <cmath>

#include "models/work_builder.h"

namespace pipesim {
namespace {

constexpr std::int64_t kAligned = 8;  // elements of 16 bytes

}  // namespace

using enum RecomputeModule;

void WorkBuilder::attention_block() {
  norm(divided_, hidden_, kLayerNorm);
  const bool state = mixer_ == Mixer::kLinear;
  if (state) {
    linear_projections();
  } else if (model_.latent) {
    latent_projections();
  } else {
    plain_projections();
  }
  if (mixer_ == Mixer::kSparse) indexer();
  if (!state) exchange_context();
  core();
  const Heads heads = heads_of(model_, mixer_);
  const double values = state ? model_.linear->values() : heads.queries * heads.v;
  if (state || model_.output_gate) {
    // Weighed by a gate of their width; of linear attention normalized before.
    const double one = tokens_ * values / ranks_ * element_;
    stream(PassKind::kF, 3 * one, 1);
    stream(PassKind::kB, 5 * one, 1);
    if (state) {
      stream(PassKind::kF, 2 * one, 1);
      stream(PassKind::kB, 3 * one, 1);
    }
  }
  linear({.name = "attention's output",
          .tokens = tokens_,
          .inputs = values / ranks_,
          .outputs = hidden_,
          .bias = !state && has_output_bias(model_)});
  after_divided();
  residual();
}

void WorkBuilder::plain_projections() {
  const Heads heads = heads_of(model_, mixer_);
  const double turned_width = heads.qk * (heads.queries + heads.groups);
  const double gate = model_.output_gate ? heads.v * heads.queries : 0;
  before_divided(hidden_);
  linear({.name = "queries, keys, values",
          .tokens = tokens_,
          .inputs = hidden_,
          .outputs = (turned_width + heads.v * heads.value_groups + gate) / ranks_,
          .bias = has_qkv_bias(model_)});
  const double both = tokens_ * turned_width / ranks_ * element_;
  const bool turned = !model_.rotary_in_windows_only || mixer_ == Mixer::kWindow;
  if (model_.positions == Positions::kRotary && turned) {
    const double part = model_.rotary_percent * both;
    stream(PassKind::kF, 2 * part, 2);
    stream(PassKind::kB, 2 * part, 2);
  }
  if (model_.qk_norm != QkNorm::kNone) {
    stream(PassKind::kF, 2 * both, 2);
    stream(PassKind::kB, 3 * both, 2);
  }
}

void WorkBuilder::linear_projections() {
  const LinearAttention& linear_attention = *model_.linear;
  before_divided(hidden_);
  linear({.name = "queries, keys, values, gates",
          .tokens = tokens_,
          .inputs = hidden_,
          .outputs = linear_attention.projected() / ranks_});
  if (linear_attention.conv_kernel == 0) return;
  // The convolution and its activation, one kernel; its weights' gradient comes with B.
  const double convolved = tokens_ * linear_attention.convolved() / ranks_ * element_;
  stream(PassKind::kF, 2 * convolved, 1);
  stream(PassKind::kB, 3 * convolved, 1);
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
  const double both = 2 * tokens_ * heads * qk * element_;
  stream(PassKind::kF, 2 * both, 3);
  stream(PassKind::kB, 2 * both, 3);
}

void WorkBuilder::core() {
  if (pass_ == PassKind::kW) return;
  const bool backward = pass_ == PassKind::kB;
  if (mixer_ == Mixer::kLinear) {
    if (backward && context_.recompute.any(kCoreAttention)) linear_core(false);
    linear_core(backward);
    return;
  }
  // A flash kernel rebuilds its scores anyway; with selective recompute its whole forward is run.
  const bool fused = context_.flash_attention || is_sparse(mixer_);
  if (backward && context_.recompute.any(kCoreAttention)) {
    fused ? fused_core(false) : plain_core(false);
  }
  fused ? fused_core(backward) : plain_core(backward);
}

// Its heads score every token that a query may see (DeepSeek-V3.2, arXiv 2512.02556, section 2.1);
// queries and the key come from what attention reads, and their gradients from the indexer's own
// loss. Every tensor rank has all of its heads.
void WorkBuilder::indexer() {
  const SparseAttention& indexer = *model_.sparse;
  const double heads = indexer.num_heads;
  const double size = indexer.head_size;
  const bool latent = model_.latent && model_.latent->q_rank > 0;
  linear({.name = "indexer's queries",
          .tokens = tokens_,
          .inputs = latent ? model_.latent->q_rank : hidden_,
          .outputs = heads * size});
  linear({.name = "indexer's keys and weights",
          .tokens = tokens_,
          .inputs = hidden_,
          .outputs = size + heads});
  if (pass_ == PassKind::kW) return;
  const bool backward = pass_ == PassKind::kB;
  const double pairs = attended_pairs(model_, Mixer::kAttention, context_);
  const double rows = tokens_ * ((heads + 1) * size + heads) * element_;
  const double found = tokens_ * indexer.topk * 4.0;
  attend({Flops((backward ? 2 : 1) * 2 * pairs * heads * size),
          Bytes((backward ? 2 : 1) * rows + found), indexer.head_size, backward});
}

// Queries that attend to tokens of their own gather the keys of each. Latent attention's stay in
// the latent space, where one key of all heads is its own value.
void WorkBuilder::sparse_core(bool backward) {
  Heads heads = heads_of(model_, mixer_);
  if (model_.latent) {
    const double rank = model_.latent->kv_rank;
    heads = {.queries = heads.queries,
             .groups = 0,
             .qk = rank + model_.latent->rope_head_size,
             .v = rank};
  }
  const double queries = heads.queries / ranks_;
  const double pairs = attended_pairs(model_, mixer_, context_);
  const double depth = backward ? 3 * heads.qk + 2 * heads.v : heads.qk + heads.v;
  const double key = model_.latent ? heads.qk : heads.groups / ranks_ * (heads.qk + heads.v);
  const double rows = tokens_ * queries * (heads.qk + heads.v);
  attend({Flops(2 * pairs * queries * depth),
          Bytes((backward ? 2 : 1) * (pairs * key + rows) * element_), static_cast<int>(heads.qk),
          backward, tokens_ * queries});
}

// In chunks of c tokens, for a head with states of k x v: scores 2 c k and values 2 c v a token
// among the chunk's own, 2 k v to write the state and 2 k v to read it (Dao and Gu 2024, arXiv
// 2405.21060, section 6). The delta rule first solves for what each token adds, which takes scores
// among keys, a product with keys and values, and one more reading of the state (Yang et al. 2024,
// arXiv 2406.06484, section 3). Backward two matmuls for each, and scores and states made again.
void WorkBuilder::linear_core(bool backward) {
  const LinearAttention& linear_attention = *model_.linear;
  const double heads = linear_attention.num_heads / ranks_;
  const double k = linear_attention.key_head_size;
  const double v = linear_attention.head_size;
  const double chunk = std::min(linear_attention.chunk_size, context_.seq_length);
  const bool delta = linear_attention.kind == LinearAttention::Kind::kGatedDelta;
  // Mamba's heads of a group share their scores.
  const double scored = linear_attention.kind == LinearAttention::Kind::kMamba2
                            ? linear_attention.key_heads / ranks_
                            : heads;
  const double scores = 2 * chunk * k * scored;
  const double state = 2 * k * v * heads;
  double flops = scores + 2 * chunk * v * heads + 2 * state;
  if (delta) flops += scores + 2 * chunk * (k + v) * heads + state;
  if (backward) flops = 2 * flops + (delta ? 2 : 1) * scores + state;
  const double rows =
      tokens_ * (2 * linear_attention.values() + 2 * linear_attention.keys()) / ranks_ * element_;
  const double states = 2 * tokens_ / chunk * k * v * heads * 4;  // fp32, written and read
  attend({Flops(tokens_ * flops), Bytes((backward ? 2 : 1) * (rows + states)),
          linear_attention.key_head_size, backward});
}

void WorkBuilder::fused_core(bool backward) {
  if (is_sparse(mixer_)) return sparse_core(backward);
  const Heads all = attending_heads(model_, mixer_, context_);
  const double heads = all.queries / ranks_;
  const double qk = all.qk;
  const double v = all.v;
  const double pairs = attended_pairs(model_, mixer_, context_);
  const double depth = backward ? 3 * qk + 2 * v : qk + v;
  const double groups = all.groups / ranks_;
  // Keys of the sequence up to a slice's end, for this GPU's heads; queries and outputs in every
  // part of a ring.
  const double seen = 1 + 1.0 * context_.before / context_.seq_length;
  const double keys = seen * tokens_ * sequence_ranks(context_) * groups * (qk + v);
  const double queries = ring_ranks(context_) * tokens_ * heads * (qk + v);
  attend({Flops(2 * pairs * heads * depth), Bytes((backward ? 2 : 1) * (keys + queries) * element_),
          static_cast<int>(qk), backward, tokens_ * heads});
}

void WorkBuilder::plain_core(bool backward) {
  const std::int64_t queries = context_.seq_length / context_.context;
  const std::int64_t keys = context_.before + context_.seq_length;
  const Heads all = heads_of(model_, mixer_);
  const auto qk = static_cast<std::int64_t>(all.qk);
  const auto v = static_cast<std::int64_t>(all.v);
  const double heads = context_.micro_batch_size * all.queries / ranks_;
  const std::int64_t batch = std::llround(heads);
  const double scores = heads * static_cast<double>(queries) * static_cast<double>(keys);
  const auto add = [&](const char* name, std::int64_t m, std::int64_t n, std::int64_t k) {
    Matmul matmul{m, n, k, batch, kernel_precision(), element_};
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
  work_.moved += Bytes(scores * element_ * (backward ? 3 : 2));
  if (context_.dropout) work_.moved += Bytes(scores * (2 * element_ + 1));
  work_.kernels += context_.dropout ? 2 : 1;
}

}  // namespace pipesim
