// Seconds as a scenario states them: of passes, or of the parts of a layer.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/pair.h"
#include "sim/core/error.h"
#include "sim/core/units.h"
#include "sim/pipeline/vocabulary.h"
#include "sim/scenario/measured_passes.h"

namespace pipesim {

enum class CostBasis {
  kDevice,  // one microbatch through all layers of a device, shared evenly by its chunks
  kStage,   // one microbatch through one virtual stage
};

// The parts of a layer each way, as models/pair.h runs those of two microbatches at once.
struct GivenLayers {
  ForwardParts forward;
  BackwardParts backward;
  double exchange_share = 0;  // of the GPU, held by an exchange
  std::vector<int> count;     // of a device or stage, by GivenCost::per; or one for all
};

// A part of F and of B.
struct SliceShare {
  double forward = 0;
  double backward_input = 0;
};

// Seconds of passes that do not depend on a slice's length; empty: none.
struct GivenFixed {
  std::vector<Seconds> forward;
  std::vector<Seconds> backward_input;
  std::vector<Seconds> backward_weight;

  [[nodiscard]] bool any() const {
    return !forward.empty() || !backward_input.empty() || !backward_weight.empty();
  }
};

// Costs as the scenario states them: one value for all, or one per device or stage in forward
// order.
struct GivenCost {
  Location where = {};  // of the section
  CostBasis per = CostBasis::kDevice;
  std::vector<Seconds> forward;
  std::vector<Seconds> backward_input;
  std::vector<Seconds> backward_weight;
  std::vector<Seconds> overlapped;    // empty: no overlapped blocks, unless `layer` has them
  std::vector<Seconds> recompute;     // empty: as long as forward
  std::optional<GivenLayers> layers;  // from which the three above were made, and blocks follow
  SliceShare attention = {};          // what is causal attention: a slice takes by its position
  GivenFixed fixed = {};              // every slice takes all of it
  // A device's share of a sharded vocabulary, one value or one per device whatever `per` is.
  std::vector<Seconds> output_forward;
  std::vector<Seconds> output_backward;
  std::vector<Seconds> input_forward;
  std::vector<Seconds> input_backward;
  // Seconds to copy what F acquired; empty: unknown.
  std::vector<Seconds> copy_out;
  std::vector<Seconds> copy_in;
  double copy_solo_factor = 1;   // on a copy while its link carries none the other way
  Seconds transfer;              // between different devices, unless `message` is set
  std::optional<Bytes> message;  // of a boundary: the cluster says how long that takes
  Seconds collective;  // of a pipeline's devices: of a sharded vocabulary, and the gradient norm
  std::optional<BarrierSeconds> barriers = {};  // of a sharded vocabulary, where they differ
  Seconds optimizer;
  // Replaces all numbers above except those of a vocabulary and of the step that closes an
  // iteration.
  std::shared_ptr<const MeasuredPasses> passes = nullptr;
};

// Sets F, B and W to the sums of their layers' parts. Requires `layers`.
void sum_layers(GivenCost& cost);

// True if the seconds of overlapped blocks are given, or follow.
inline bool knows_blocks(const GivenCost& cost) {
  return !cost.overlapped.empty() || cost.layers.has_value();
}

}  // namespace pipesim
