#include "models/work_builder.h"

namespace pipesim {

using enum RecomputeModule;

// Queries of a rank, and one key that is every head's and its own value. Layers Y and X project
// keys and weights of the stretches that become one token, which are added up by a softmax.
void WorkBuilder::compressed_projections() {
  const CompressedAttention& compressed = *model_.compressed;
  const double head = model_.kv_channels;
  const double rank = compressed.q_rank;
  linear({.name = "queries, compressing", .tokens = divided_, .inputs = hidden_, .outputs = rank});
  norm(divided_, rank, kLatentNorm);
  linear({.name = "keys", .tokens = divided_, .inputs = hidden_, .outputs = head});
  norm(divided_, head, kLatentNorm);
  double gathered = rank + head;
  if (const int ratio = compression(model_, mixer_); ratio > 0) {
    const double width = compressed_width(model_, mixer_);
    linear(
        {.name = "compressed keys", .tokens = divided_, .inputs = hidden_, .outputs = 2 * width});
    const double read = divided_ * 2 * width * element_;
    const double made = divided_ * head / ratio * element_;
    stream(PassKind::kF, read + made, 2);
    stream(PassKind::kB, 2 * read + made, 2);
    norm(divided_ / ratio, head, kLatentNorm);
    gathered += head / ratio;
  }
  before_divided(gathered);
  const double heads = model_.num_attention_heads * head / ranks_;
  linear({.name = "queries", .tokens = tokens_, .inputs = rank, .outputs = heads});
  // Positions turn queries, keys, and outputs back.
  const double turned = model_.rotary_percent * tokens_ * (2 * heads + head) * element_;
  stream(PassKind::kF, 2 * turned, 3);
  stream(PassKind::kB, 2 * turned, 3);
}

// Every group of heads has a matrix of its own in front of the common one.
void WorkBuilder::attention_output() {
  const CompressedAttention& compressed = *model_.compressed;
  const double groups = compressed.output_groups / ranks_;
  const double heads = 1.0 * model_.num_attention_heads * model_.kv_channels;
  linear({.name = "attention's output, compressing",
          .tokens = tokens_,
          .inputs = heads / compressed.output_groups,
          .outputs = 1.0 * compressed.output_rank,
          .batch = groups,
          .experts = false});
  linear({.name = "attention's output",
          .tokens = tokens_,
          .inputs = groups * compressed.output_rank,
          .outputs = hidden_});
}

// Heads share their keys. Where an indexer finds these, each query gathers its own.
void WorkBuilder::compressed_core(bool backward) {
  const double head = model_.kv_channels;
  const double queries = model_.num_attention_heads / ranks_;
  const double pairs = attended_pairs(model_, mixer_, context_);
  const int ratio = compression(model_, mixer_);
  const double whole = tokens_ * (1 + (ratio > 0 ? 1.0 / ratio : 0));
  const double keys = (mixer_ == Mixer::kIndexed ? pairs : whole) * head;
  const double rows = 2 * tokens_ * queries * head;
  attend({Flops(2 * pairs * queries * (backward ? 5 : 2) * head),
          Bytes((backward ? 2 : 1) * (keys + rows) * element_), model_.kv_channels, backward,
          tokens_ * queries});
}

}  // namespace pipesim
