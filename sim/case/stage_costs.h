// Seconds and bytes of every stage of a case, given or modelled.
#pragma once

#include <span>

#include "models/layout.h"
#include "sim/case/case.h"

namespace pipesim {

// By the outline's setting, whatever they were.
void find_layer_costs(Outline& outline);

// Bytes of the older versions of weights that a device with these stages keeps for its passes,
// where the schedule keeps some (Schedule::versions). Gradients and the optimizer's state exist
// once.
Bytes older_weights(const Outline& outline, int device, std::span<const StageLayers> stages);

// Sets memory, the problem's stages and the closing step by the case's context, in place of earlier
// ones. Requires outline, layout and shape. O(stages).
void add_stage_costs(Case& made);

}  // namespace pipesim
