// Resolves how slices of a sequence are chosen. `splits: optimal`: the lengths with which it passes
// soonest. `splits: {equal_flops: N}`: those that take as many FLOPs each.
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

// Lengths in tokens, cut from the end of the sequence. Each slice takes at most its share of F's
// FLOPs, in whole multiples of the choice's tokens; the first takes the rest. Documents and factors
// as above. InputError at the schedule where no length of the sequence is given, or a slice would
// have no tokens. O(slices x log(tokens)) times the cost of a model's layers.
std::vector<long> equal_slices(const Outline& outline, const Layout* balanced);

}  // namespace pipesim
