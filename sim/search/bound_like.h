// Lower bounds of all orders that run the passes of a given program on its placement. It may have
// two directions, recomputation and a way back that is not always waited for. Unequal units may
// overtake each other.
#pragma once

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/search/bound.h"

namespace pipesim {

struct ReasonedBound {
  Seconds seconds;
  BoundReason reason;
};

// By the problem's objective, of orders on the placement of `like` that run its passes, BW split,
// within the limit. `blocks`: they may be joined into overlapped blocks. It is `lower_bound` or
// `bound_with_pairs` where one pipeline runs F, B and W and unequal microbatches keep their order.
// Otherwise it is the largest of
//   - each device's work, R included, and for a makespan the way of the first F to it;
//   - the bytes times seconds that its units must hold, over the limit;
//   - the way of one unit down and back;
//   - where units travel one way and are waited for, the bound without R of any order. Where none
//     recomputes the limit counts.
// O(that of the bound + units x stages).
ReasonedBound reasoned_bound_like(const Program& like, const Problem& problem, Bytes limit,
                                  bool blocks);
// Its seconds alone.
Seconds bound_like(const Program& like, const Problem& problem, Bytes limit, bool blocks);

}  // namespace pipesim
