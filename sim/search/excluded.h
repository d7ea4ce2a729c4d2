// A lower bound that comes from excluding times: what is known about the order of passes if some
// program took no longer (ordering.h) contradicts itself.
//
// For small problems, since each tried time costs about O(passes^3). Returns the given bound where
// sequences are split, or all devices have more than kMostExcluded passes.
#pragma once

#include "sim/pipeline/problem.h"
#include "sim/planning/windows.h"

namespace pipesim {

inline constexpr int kMostExcluded = 150;

// The largest time between `least` and `most` that halving finds, to a five-hundredth of `most`.
// `least` is a lower bound, `most` the time of some program within the limit.
Seconds excluded_below(const Problem& problem, Bytes limit, Seconds least, Seconds most);

}  // namespace pipesim
