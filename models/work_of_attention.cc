#include <algorithm>
#include <cmath>

#include "models/tensor_exchange.h"
#include "models/work_builder.h"

namespace pipesim {
namespace {

constexpr std::int64_t kAligned = 8;  // elements of 16 bytes

}  // namespace

using enum RecomputeModule;

void WorkBuilder::attention_block() {
  enter_residual("streams before attention");
  norm(divided_, hidden_, kLayerNorm);
  const Mixer both = mixer_;
  if (has_scores(both)) {
    if (both == Mixer::kBeside || both == Mixer::kCross) mixer_ = Mixer::kAttention;
    scores_part();
  }
  if (has_states(both)) {
    // Beside attention its gathered input serves.
    if (!has_scores(both) || model_.latent) before_divided(hidden_);
    mixer_ = Mixer::kLinear;
    states_part();
  }
  mixer_ = both;
  after_divided();
  if (both == Mixer::kBeside) {
    // The other's output is read too; backward the gradients of their input are added.
    const double one = divided_ * hidden_ * element_;
    stream(PassKind::kF, one, 0);
    stream(PassKind::kB, 3 * one, 1);
  }
  residual();
  if (both == Mixer::kCross) cross_part();
}

// Queries come from what is decoded, keys and values from the encoder's output, which gets a
// gradient from every layer.
void WorkBuilder::cross_part() {
  const Heads heads = heads_of(model_, Mixer::kCross);
  const double encoded = key_tokens() * hidden_ * element_;
  norm(divided_, hidden_, kLayerNorm);
  before_divided(hidden_);
  linear({.name = "queries of cross attention",
          .tokens = tokens_,
          .inputs = hidden_,
          .outputs = heads.qk * heads.queries / ranks_,
          .bias = has_qkv_bias(model_)});
  if (const auto kind = tensor_exchange(context_, pass_, true)) {
    collective(*kind, Group::kTensor, encoded);
  }
  linear({.name = "keys and values of cross attention",
          .tokens = key_tokens(),
          .inputs = hidden_,
          .outputs = (heads.qk + heads.v) * heads.groups / ranks_,
          .bias = has_qkv_bias(model_)});
  stream(PassKind::kB, 3 * encoded / (context_.sequence_parallel ? ranks_ : 1), 1);
  core();
  linear({.name = "cross attention's output",
          .tokens = tokens_,
          .inputs = heads.queries * heads.v / ranks_,
          .outputs = hidden_,
          .bias = has_output_bias(model_)});
  after_divided();
  residual();
}

// Scores of a head and of two places are alike in all sequences.
void WorkBuilder::add_position_scores(bool backward) {
  if (model_.positions != Positions::kRelative || mixer_ == Mixer::kCross) return;
  const double heads = heads_of(model_, mixer_).queries / ranks_;
  const double scores = heads * context_.seq_length * context_.seq_length * element_;
  work_.moved += Bytes((backward ? 2 : 1) * scores);
}

void WorkBuilder::scores_part() {
  if (model_.compressed) {
    compressed_projections();
  } else if (model_.latent) {
    latent_projections();
  } else {
    plain_projections();
  }
  if (finds_tokens(mixer_)) indexer();
  exchange_context();
  core();
  const Heads heads = heads_of(model_, mixer_);
  const double values = heads.queries * heads.v;
  if (model_.output_gate) weigh_output(values);
  if (model_.compressed) return attention_output();
  linear({.name = "attention's output",
          .tokens = tokens_,
          .inputs = values / ranks_,
          .outputs = hidden_,
          .bias = has_output_bias(model_)});
}

// By a gate of the same width.
void WorkBuilder::weigh_output(double values) {
  const double one = tokens_ * values / ranks_ * element_;
  stream(PassKind::kF, 3 * one, 1);
  stream(PassKind::kB, 5 * one, 1);
}

void WorkBuilder::plain_projections() {
  const Heads heads = heads_of(model_, mixer_);
  const double turned_width = heads.qk * (heads.queries + heads.groups);
  const double gate = model_.output_gate ? heads.v * heads.queries : 0;
  before_divided(hidden_);
  double outputs = turned_width + heads.v * heads.value_groups + gate;
  if (model_.q_rank > 0) {
    low_rank("queries", model_.q_rank, heads.qk * heads.queries);
    norm(tokens_, model_.q_rank, kLatentNorm);
    outputs -= heads.qk * heads.queries;
  }
  linear({.name = "queries, keys, values",
          .tokens = tokens_,
          .inputs = hidden_,
          .outputs = outputs / ranks_,
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
  if (!model_.output_gate) return;
  before_divided(hidden_);
  linear({.name = "gate of attention's output",
          .tokens = tokens_,
          .inputs = hidden_,
          .outputs = model_.num_attention_heads * latent.v_head_size / ranks_});
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
    if (model_.linear->kind == LinearAttention::Kind::kShortConv) return;
    if (backward && context_.recompute.any(kCoreAttention)) linear_core(false);
    linear_core(backward);
    return;
  }
  // A flash kernel rebuilds its scores anyway; with selective recompute its whole forward is run.
  const bool fused = context_.flash_attention || is_sparse(mixer_) || model_.compressed;
  if (backward && context_.recompute.any(kCoreAttention)) {
    fused ? fused_core(false) : plain_core(false);
  }
  fused ? fused_core(backward) : plain_core(backward);
  add_position_scores(backward);
}

// Its heads score every token that a query may see (DeepSeek-V3.2, arXiv 2512.02556, section 2.1),
// or what these are compressed to. Queries and keys come from what attention reads, and their
// gradients from the indexer's own loss. Every tensor rank has all of its heads.
void WorkBuilder::indexer() {
  const SparseAttention& indexer = *model_.sparse;
  const double heads = indexer.num_heads;
  const double size = indexer.head_size;
  const double keys = indexer_keys(model_);
  linear({.name = "indexer's queries",
          .tokens = tokens_,
          .inputs = query_rank(model_),
          .outputs = heads * size});
  linear({.name = "indexer's keys and weights",
          .tokens = tokens_,
          .inputs = hidden_,
          .outputs = keys});
  if (pass_ == PassKind::kW) return;
  const bool backward = pass_ == PassKind::kB;
  const int ratio = std::max(1, compression(model_, mixer_));
  const double pairs = attended_pairs(model_, Mixer::kAttention, context_) / ratio;
  const double rows = tokens_ * (heads * size + keys) * element_;
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

void WorkBuilder::fused_core(bool backward) {
  if (model_.compressed) return compressed_core(backward);
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
  const double keys = seen * key_tokens() * sequence_ranks(context_) * groups * (qk + v);
  const double queries = ring_ranks(context_) * tokens_ * heads * (qk + v);
  attend({Flops(2 * pairs * heads * depth), Bytes((backward ? 2 : 1) * (keys + queries) * element_),
          static_cast<int>(qk), backward, tokens_ * heads});
}

void WorkBuilder::plain_core(bool backward) {
  const std::int64_t queries = context_.seq_length / context_.context;
  const std::int64_t keys =
      mixer_ == Mixer::kCross ? context_.encoded : context_.before + context_.seq_length;
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
