// Seconds of a case whose costs follow from its model and the GPUs of its cluster
// (docs/reference/model.md, "Seconds"). For make_case.
#pragma once

#include "sim/case/case.h"

namespace pipesim {

// Sets the seconds of every stage. They include waits for sharded weights and gradients, messages,
// and shares of the vocabulary. Sets the step that closes an iteration on each device: its
// gradients, their norm unless the optimizer is validated afterwards, its optimizer step, its
// parameters. The setting's context is a slice of a sequence, or all of it. Requires
// Outline::setting and a layout. O(stages), with sharding O(layers).
void add_roofline(Case& made);

}  // namespace pipesim
