// Seconds of a case whose costs follow from its model and the GPUs of its cluster
// (docs/reference/model.md, "Seconds"). For make_case.
#pragma once

#include "sim/case/case.h"

namespace pipesim {

// Sets seconds of every stage, with what its passes wait for of sharded weights and gradients, of
// messages and shares of the vocabulary, and what closes an iteration on each device: its
// gradients, their norm unless the optimizer is validated afterwards, its optimizer step, its
// parameters. Of the slice of a sequence that the setting's context is, or of all of it. Requires
// Outline::setting and a layout. O(stages), with sharding O(layers).
void add_roofline(Case& made);

}  // namespace pipesim
