#include <algorithm>

#include "models/work_builder.h"

namespace pipesim {
namespace {

// A scan's FLOPs for a channel and a number of its state: 2 for the decay, 3 for what is added, 2
// for the state, 2 for what is read. Gu and Dao count as many (state-spaces/mamba, 9 B L D N).
constexpr double kScanFlops = 9;
constexpr int kWholeHead = 128;  // a scan has no heads: its kernel is not slowed by narrow ones

}  // namespace

void WorkBuilder::states_part() {
  const LinearAttention& linear_attention = *model_.linear;
  linear_projections();
  core();
  const double values = linear_attention.values();
  weigh_output(values);
  using Kind = LinearAttention::Kind;
  // Mamba-1's is normalized before.
  if (linear_attention.kind != Kind::kMamba1 && linear_attention.kind != Kind::kShortConv) {
    const double one = tokens_ * values / ranks_ * element_;
    stream(PassKind::kF, 2 * one, 1);
    stream(PassKind::kB, 3 * one, 1);
  }
  linear({.name = "attention's output",
          .tokens = tokens_,
          .inputs = values / ranks_,
          .outputs = hidden_});
}

void WorkBuilder::linear_projections() {
  const LinearAttention& linear_attention = *model_.linear;
  linear({.name = "queries, keys, values, gates",
          .tokens = tokens_,
          .inputs = hidden_,
          .outputs = linear_attention.projected() / ranks_});
  if (linear_attention.kind == LinearAttention::Kind::kKda) {
    low_rank("decays", linear_attention.step_rank, linear_attention.keys());
    if (linear_attention.gate_rank > 0) {
      low_rank("gate of attention's output", linear_attention.gate_rank, linear_attention.values());
    }
  }
  if (linear_attention.kind == LinearAttention::Kind::kShortConv) {
    weigh_output(linear_attention.values());  // its input is a product too
  }
  if (linear_attention.conv_kernel > 0) {
    // The convolution and its activation, one kernel; its weights' gradient comes with B.
    const double convolved = tokens_ * linear_attention.convolved() / ranks_ * element_;
    stream(PassKind::kF, 2 * convolved, 1);
    stream(PassKind::kB, 3 * convolved, 1);
  }
  if (linear_attention.kind == LinearAttention::Kind::kMamba1) selection();
}

// Two matrices, of which tensor ranks divide the second.
void WorkBuilder::low_rank(const char* name, double rank, double outputs) {
  linear({.name = name, .tokens = tokens_, .inputs = hidden_, .outputs = rank});
  linear({.name = name, .tokens = tokens_, .inputs = rank, .outputs = outputs / ranks_});
}

// Steps, and what goes into the state and is read of it, come from the convolution's output (Gu and
// Dao 2023, arXiv 2312.00752, section 3.2). Tensor ranks add up their channels' parts, and in B
// those of the gradients.
void WorkBuilder::selection() {
  const LinearAttention& linear_attention = *model_.linear;
  const double channels = linear_attention.values() / ranks_;
  const double rank = linear_attention.step_rank;
  const double selected = rank + 2.0 * linear_attention.key_head_size;
  linear({.name = "steps and states, compressing",
          .tokens = tokens_,
          .inputs = channels,
          .outputs = selected});
  if (context_.tensor > 1 && pass_ != PassKind::kW) {
    collective(CollectiveKind::kAllReduce, Group::kTensor, tokens_ * selected * element_);
  }
  linear({.name = "steps", .tokens = tokens_, .inputs = rank, .outputs = channels, .bias = true});
}

// Outside of matmul units, in fp32. Backward makes the states again.
void WorkBuilder::scan(bool backward) {
  const LinearAttention& linear_attention = *model_.linear;
  const double channels = linear_attention.values() / ranks_;
  const double states = channels * linear_attention.key_head_size;
  const double chunk = std::min(linear_attention.chunk_size, context_.seq_length);
  const double rows = tokens_ * (3 * channels + 2.0 * linear_attention.key_head_size) * element_;
  const double kept = 2 * tokens_ / chunk * states * 4;
  work_.attention.push_back({Flops((backward ? 3 : 1) * kScanFlops * tokens_ * states),
                             Bytes((backward ? 2 : 1) * (rows + kept)), kWholeHead, backward});
  work_.attention.back().precision = Precision::kFp32;
}

// In chunks of c tokens, for a head with states of k x v (Dao and Gu 2024, arXiv 2405.21060,
// section 6). A token takes 2 c k for scores and 2 c v for values of its chunk. Writing the state
// and reading it take 2 k v each. The delta rule first solves for what each token adds (Yang et al.
// 2024, arXiv 2406.06484, section 3). That takes scores among keys, a product with keys and values,
// and one more reading of the state. Backward two matmuls for each, and scores and states made
// again.
void WorkBuilder::linear_core(bool backward) {
  const LinearAttention& linear_attention = *model_.linear;
  if (linear_attention.kind == LinearAttention::Kind::kMamba1) return scan(backward);
  const double heads = linear_attention.num_heads / ranks_;
  const double k = linear_attention.key_head_size;
  const double v = linear_attention.head_size;
  const double chunk = std::min(linear_attention.chunk_size, context_.seq_length);
  const bool channels = linear_attention.kind == LinearAttention::Kind::kKda;
  const bool delta = linear_attention.kind == LinearAttention::Kind::kGatedDelta || channels;
  // Mamba's heads of a group share their scores.
  const double scored = linear_attention.kind == LinearAttention::Kind::kMamba2
                            ? linear_attention.key_heads / ranks_
                            : heads;
  const double scores = 2 * chunk * k * scored;
  const double state = 2 * k * v * heads;
  double flops = scores + 2 * chunk * v * heads + 2 * state;
  if (delta) flops += scores + 2 * chunk * (k + v) * heads + state;
  if (backward) flops = 2 * flops + (delta ? 2 : 1) * scores + state;
  // A decay a channel is read in fp32.
  const double decays = channels ? 4 * linear_attention.keys() : 0;
  const double rows =
      tokens_ *
      ((2 * linear_attention.values() + 2 * linear_attention.keys()) * element_ + decays) / ranks_;
  const double states = 2 * tokens_ / chunk * k * v * heads * 4;  // fp32, written and read
  attend({Flops(tokens_ * flops), Bytes((backward ? 2 : 1) * (rows + states)),
          linear_attention.key_head_size, backward});
}

}  // namespace pipesim
