// Seconds of a case whose costs follow from its model and the GPUs of its cluster
// (docs/reference/model.md, "Seconds"). For make_case.
#pragma once

#include "sim/case/case.h"

namespace pipesim {

// Sets seconds of every stage, message and share of the vocabulary, and what closes an iteration on
// each device: its gradients, their norm unless the optimizer is validated afterwards, its
// optimizer step, its parameters. Sequence splits share a microbatch's seconds evenly. Requires
// Outline::setting and a layout. O(stages).
void add_roofline(Case& made);

}  // namespace pipesim
