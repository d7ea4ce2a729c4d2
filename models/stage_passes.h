// Passes of a stage: the sums of its layers'.
#pragma once

#include "models/layer_cost.h"
#include "models/layout.h"

namespace pipesim {

struct StagePasses {
  PassCost forward;
  PassCost backward_input;
  PassCost backward_weight;
  PassCost recompute;  // R of the layers that are; embedding and output are not run again
};

// Sums over the stage's layers; an MTP module runs the output once more. O(1), with some layers
// recomputed O(layers).
StagePasses stage_passes(const Transformer& model, const StageLayers& stage,
                         const LayerCosts& costs, const RecomputedLayers& recomputed = {});

}  // namespace pipesim
