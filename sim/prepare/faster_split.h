// From the split of layers with the least slowest stage to one with a shorter iteration.
#pragma once

#include <optional>

#include "models/layout.h"
#include "sim/case/case.h"

namespace pipesim {

// True if the order of passes is the same for every split.
bool has_fixed_order(const Case& made);

// Starts from `found` and the even splits. Returns the split that fits with the fewest empty
// stages, then with the shortest iteration by the contention-free engine without jitter. Returns
// nothing where none fits; never a longer iteration than an even split that fits and leaves no
// stage empty.
//
// Critical paths choose the splits that are worth a simulation (critical_paths.h): at most 128,
// fewer where programs are long. Where the order of passes follows the split, at most 64 are
// planned for (256 of short programs). Others are simulated with the order of a good one. Requires
// asks_for_balance. O(splits x (passes + 30,000)).
std::optional<Layout> faster_split(const Outline& outline, const Layout& found);

}  // namespace pipesim
