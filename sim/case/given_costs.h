// A scenario's given costs and memory, on the stages of a case (docs/reference/model.md, "Given
// costs"). make_case calls these in their order here.
#pragma once

#include "sim/case/case.h"

namespace pipesim {

// Seconds of every stage and boundary, and of devices' shares of a vocabulary; 0 where nothing is
// given. O(stages).
void add_given_costs(Case& made);

// Shares of a pass of a whole sequence: causal attention, and what every slice takes in full. The
// rest goes by a slice's length.
struct PassParts {
  double attention = 0;
  double fixed = 0;
};
struct SliceParts {
  PassParts forward, backward_input, backward_weight;
};
SliceParts slice_parts(const Case& made, int vs);

// Bytes of every stage, given or of the case's memory; 0 when there is neither. O(stages).
void add_bytes(Case& made);

}  // namespace pipesim
