// Seconds and bytes of every stage of a case, given or modelled.
#pragma once

#include "sim/case/case.h"

namespace pipesim {

// By the outline's setting, whatever they were.
void find_layer_costs(Outline& outline);

// Of the case's context: memory, stages of the problem, what closes an iteration. Requires outline,
// layout and shape; what was there of these is replaced. O(stages).
void add_stage_costs(Case& made);

}  // namespace pipesim
