// The part of a scenario with a model: its layers on stages, the ranks that divide them, and the
// state that the framework keeps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/layer_context.h"
#include "models/layout.h"
#include "models/memory.h"
#include "models/memory_fit.h"
#include "models/transformer.h"
#include "sim/core/error.h"

namespace pipesim {

// How layers are split over stages: one of these ways.
struct LayerSplit {
  enum class Way { kEven, kListed, kString, kBalanced, kRedistributed, kPlanned };
  Way way = Way::kEven;
  EvenSplit even = {};
  std::vector<int> listed = {};
  std::string text = {};
  Layout planned = {};
  Location where = {};
};

// `context` holds no recomputation: that is a schedule's.
struct Modelled {
  Transformer model;
  LayerContext context;
  ParameterState state;
  LayerSplit split;
  // That a GPU's stages have to fit: the scenario's, else the memory of its cluster's GPU.
  std::optional<Bytes> capacity = {};
  std::string precision = "bf16";    // the scenario's word: fp16 costs what bf16 does
  bool block_scaled = false;         // mxfp8, nvfp4: a transposed copy has scales of its own
  std::optional<Bytes> margin = {};  // of the GPU's memory, where the capacity is not given
  MemoryBand band = {};              // of a peak, by the framework's generation
};

// Where layers stand on the stages of a schedule: by the split or, where it asks for balance, by
// `balanced`. Without `balanced` they are balanced by their FLOPs. InputError at the split when the
// stages cannot be filled so.
Layout layout_of(const Modelled& modelled, const Placement& placement, const std::string& schedule,
                 const Layout* balanced = nullptr);

// The FLOPs of all passes of a layer: what layers weigh where no seconds are known.
LayerSeconds weights_by_work(const Modelled& modelled);

}  // namespace pipesim
