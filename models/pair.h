// A forward of one microbatch and a backward of another through a GPU's layers at once. Compute
// runs on one stream and exchanges of tokens between experts on another, so that each hides behind
// the other.
//
// Layer by layer, the forward's first with the backward's last, parts are issued in this order (d:
// of the backward, w: its weight gradients):
//   dC | A | dM | D | wM | dD | M | C | dA | wA
// A attention, norms, router, shared experts; D dispatch; M routed experts, or the MLP; C combine.
// A, M, dM, dA and w compute, the others exchange. Layers of the longer pass that are left run
// alone. A stream runs its parts in that order. Each part waits for the one before it in its own
// pass; w waits only for its stream. Without delayed weight gradients they are part of dM and dA.
// This is Megatron-LM's combined 1F1B (model_chunk_schedule_plan.py). With delayed weight gradients
// it is DeepSeek-V3's pair (arXiv 2412.19437, section 3.2.2, figure 4), whose period is the same,
// half a layer on.
//
// While tokens are exchanged, what is computed runs at 1 - exchange_share of its rate: the kernels
// that exchange hold multiprocessors.
#pragma once

#include <span>

#include "sim/core/units.h"

namespace pipesim {

// Seconds of one layer; all at least 0.
struct ForwardParts {
  Seconds attention, dispatch, experts, combine;
};
struct BackwardParts {
  Seconds combine, experts, dispatch, attention;  // input gradients, in the order in which they run
  Seconds experts_weight, attention_weight;
};

// F of a layer whose parts run one after the other, and B without W.
Seconds total(const ForwardParts& parts);
Seconds total(const BackwardParts& parts);

struct PairOptions {
  bool delay_weight = false;  // delay_wgrad_compute
  // ep_overlap_early_attn_memory_release: dA is issued before M
  bool early_attention = false;
  double exchange_share = 0;  // in [0, 1)
};

struct PairTimes {
  Seconds total;
  // Times of the forward's result and of the backward's gradient.
  Seconds forward_ready, backward_ready;
};

// `backward` in the order of layers, the last of which runs first. Either may be empty. O(layers);
// allocates.
PairTimes pair_times(std::span<const ForwardParts> forward, std::span<const BackwardParts> backward,
                     const PairOptions& options);

// No order of the parts takes less than `least`, nor one that always runs something more than
// `most`.
//   least: the largest of all that computes + exchange_share x all that is exchanged, all that is
//          exchanged, the forward alone, and the backward's input gradients alone
//   most:  all that computes + all that is exchanged
struct PairBounds {
  Seconds least, most;
};
PairBounds pair_bounds(std::span<const ForwardParts> forward,
                       std::span<const BackwardParts> backward, const PairOptions& options);

}  // namespace pipesim
