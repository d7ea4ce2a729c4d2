// From the split of layers with the least slowest stage to one with a shorter iteration.
#pragma once

#include "models/layout.h"
#include "sim/case/case.h"

namespace pipesim {

// Of `found`, the even splits, and what moving one layer at a time makes of each: the split that
// fits with the fewest empty stages, and of those the one with the shortest iteration by the
// contention-free engine without jitter. Never a longer iteration than an even split that fits and
// leaves no stage empty. A local search: at most 256 splits are simulated, fewer where programs are
// long or the order of passes follows the split. O(splits x passes). Requires asks_for_balance.
Layout faster_split(const Outline& outline, const Layout& found);

}  // namespace pipesim
