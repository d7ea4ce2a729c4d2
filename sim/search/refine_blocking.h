// Refines an order whose transfers hold devices. `refine` times orders without that, so that each
// order here is simulated.
#pragma once

#include "sim/case/case.h"
#include "sim/core/units.h"
#include "sim/search/refine.h"

namespace pipesim {

struct Timed {
  Case made;
  Seconds seconds;  // the iteration; infinite where its devices wait for each other
};

// The case with the order, each W directly behind its B as one BW or all apart, whichever is the
// shorter.
Timed timed(const Case& made, const Program& order);

// Moves passes of the case's order within their device and the limit, and keeps what makes the
// iteration no longer. An order whose devices wait for each other is not kept. `problem` is the
// case's with bytes. Deterministic for a seed. O(effort).
Timed refine_blocking(const Timed& start, const Problem& problem, Bytes limit,
                      const RefineOptions& options);

}  // namespace pipesim
