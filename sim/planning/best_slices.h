// Lengths of the slices that a sequence is cut into, by the dynamic programme of TeraPipe (Li et
// al. 2021, arXiv 2102.07988, section 3.3).
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "sim/core/units.h"

namespace pipesim {

// Forward and backward time of one slice.
struct SliceTime {
  Seconds work;     // on the device that works most
  Seconds passing;  // on all others, and on its messages
};

inline constexpr int kMostSliceUnits = 128;

// The latency of a pipeline through which `microbatches` sequences pass one after the other, cut
// alike. It is all work, plus the time that the slowest slice takes to pass.
Seconds latency(const std::vector<SliceTime>& slices, int microbatches);

// Lengths in units, from the first tokens on, together `units`: at most `most` plans, the one of
// least latency first. `time` is of a slice of `length` units behind `begin` others. Each is the
// plan of least work whose slices take no longer to pass than a bound. Every time that a slice may
// take to pass is a bound once. Ties: the shortest last slices, and the lower bound first.
// O(units^2) calls, O(units^4) steps. Requires 1 <= units <= kMostSliceUnits and most > 0.
std::vector<std::vector<long>> best_slices(
    int units, int microbatches, size_t most,
    const std::function<SliceTime(int begin, int length)>& time);

}  // namespace pipesim
