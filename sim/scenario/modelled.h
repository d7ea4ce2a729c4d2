// What a scenario with a model asks for: which layers stand where, over which ranks they are
// divided and what the framework keeps; and the memory that follows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/layer_context.h"
#include "models/layout.h"
#include "models/memory.h"
#include "models/transformer.h"
#include "sim/core/error.h"

namespace pipesim {

struct Scenario;
struct ScheduleChoice;

// How layers are split over stages: one of these ways.
struct LayerSplit {
  enum class Way { kEven, kListed, kString, kBalanced };
  Way way = Way::kEven;
  EvenSplit even = {};
  std::vector<int> listed = {};
  std::string text = {};
  Location where = {};
};

// `context` holds no recomputation: that is a choice's.
struct Modelled {
  Transformer model;
  LayerContext context;
  ParameterState state;
  LayerSplit split;
  // That a GPU's stages have to fit: the scenario's, else the memory of its cluster's GPU.
  std::optional<Bytes> capacity = {};
};

// What a run of the choice keeps: the scenario's context with the choice's recomputation.
LayerContext context_of(const Modelled& modelled, const ScheduleChoice& choice);

// InputError at the split when the choice's stages cannot be filled so.
Layout layout_of(const Modelled& modelled, const ScheduleChoice& choice, int devices);

// Seconds of the choice's layers, or, where costs are given, their FLOPs: what `balance` weighs.
LayerSeconds layer_weights(const Scenario& scenario, const ScheduleChoice& choice);

// Requires a scenario with modelled memory. O(stages).
MemoryEstimate memory_of(const Scenario& scenario, const ScheduleChoice& choice);

// The nearest single change (models/memory.h) with which the choice's program would fit
// the capacity; plans anew for each that is tried. Empty when there is none.
std::optional<MemoryChange> change_that_fits(const Scenario& scenario,
                                             const ScheduleChoice& choice);

}  // namespace pipesim
