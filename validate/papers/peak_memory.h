// Memory of a GPU as papers measure it: what the framework has allocated at its peak.
//
// One rule for every paper (docs/reference/model.md, "Measured memory"): everything of
// models/memory.h but the framework's own overhead, on the GPU that holds most, activations by the
// schedule's order.
#pragma once

#include <optional>
#include <string>

#include "models/memory.h"
#include "sim/core/units.h"
#include "sim/pipeline/vocabulary.h"

namespace pipesim {

// Seconds of a microbatch on a device. Without them the passes are as long as their FLOPs.
struct DeviceSeconds {
  Seconds forward;
  Seconds backward_input;
  Seconds backward_weight;
  Seconds transfer;
};

struct MeasuredRun {
  Transformer model;
  LayerContext context;
  ParameterState state;
  EvenSplit split;
  std::string schedule;
  int devices = 1;
  int chunks = 1;
  int microbatches = 1;
  VocabularyPlacement vocabulary = VocabularyPlacement::kFirstLast;
  std::optional<DeviceSeconds> seconds;
};

// Both throw InfeasibleError when the schedule or the layers do not take the shape.
Bytes allocated_at_peak(const MeasuredRun& run);
// Bytes that an iteration adds to parameters, gradients and optimizer: activations, messages,
// temporaries. On the GPU that adds most.
Bytes added_at_peak(const MeasuredRun& run);

}  // namespace pipesim
