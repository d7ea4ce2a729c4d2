// A scenario's given costs and memory, on the stages of a case (docs/reference/model.md, "Given
// costs"). make_case calls these in their order here.
#pragma once

#include "sim/case/case.h"

namespace pipesim {

// Seconds of every stage and boundary, and of devices' shares of a vocabulary; 0 where nothing is
// given. O(stages).
void add_given_costs(Case& made);

// Bytes of every stage, given or of the case's memory; 0 when there is neither. O(stages).
void add_bytes(Case& made);

}  // namespace pipesim
