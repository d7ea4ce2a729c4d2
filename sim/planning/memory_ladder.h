// Limits on activation memory: 1F1B's peak, and the limits below a given one at which schedules
// with a limit plan as well.
//
// Heuristics that may hold more do not always take less time. A schedule that keeps the best of its
// plans at its limit and every rung below is never slower at a higher rung.
#pragma once

#include <vector>

#include "sim/core/units.h"
#include "sim/pipeline/problem.h"

namespace pipesim {

// 1F1B's peak: p microbatches' activations on a device.
Bytes memory_of_1f1b(const Problem& problem);

// The problem's limit, or else 1F1B's peak.
Bytes limit_or_1f1b(const Problem& problem);

// The most that one chunk keeps of a unit.
Bytes largest_chunk(const Problem& problem);

// For planners that take long. A plan within this factor of the lower bound at the limit is good
// enough: neither lower limits nor other orders are tried. A rung below can then be better by no
// more than this.
inline constexpr double kNearEnough = 1.02;

// Rungs are the multiples of a quarter (or of one part of `parts`) of 1F1B's peak. They span from
// one microbatch's bytes to three times 1F1B's peak. Returns those below `limit`, the highest
// first.
std::vector<Bytes> rungs_below(const Problem& problem, Bytes limit, int parts = 4);

}  // namespace pipesim
