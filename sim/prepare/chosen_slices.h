// Resolves `splits: optimal`: the lengths of slices with which a sequence passes soonest.
#pragma once

#include <vector>

#include "sim/case/case.h"

namespace pipesim {

// Lengths in parts of the choice's `slice_units`. Among the plans of sim/planning/best_slices.h,
// for the costs of slices on the choice's devices, the one that the schedule runs in least time.
// Documents and factors that differ are planned as an even microbatch. `balanced` places the layers
// where they are balanced. InputError at the schedule where a part has no tokens that ranks can
// divide. O(slice_units^2) times the cost of a stage, and one evaluation for each of some 40 plans.
std::vector<long> choose_slices(const Outline& outline, const Layout* balanced);

}  // namespace pipesim
