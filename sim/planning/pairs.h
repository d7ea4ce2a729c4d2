// Overlapped blocks in any order: neighbours of a device joined greedily.
//
// An F beside a BW, B or W of another microbatch, or beside a B and its W, becomes one block where
// the order takes no longer so and keeps the limit. This is what combined 1F1B does to plain 1F1B;
// here it is done to any order.
#pragma once

#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// True where a block of any two chunks of a device takes less than its two passes.
bool gains_by_pairs(const Problem& problem);

// `program` with neighbours joined until no further join helps, by the problem's objective, or
// `effort` passes have been evaluated for a start. The result is never longer and never peaks above
// the larger of `limit` and what the program peaked at. Neighbours are joined one after the other,
// in rounds from the first pass to the last, a block with BW before one with B or W alone; this is
// done from the program, and from it with all neighbours joined at once. The shortest result is
// taken. A program with copies comes back as it is, since its copies name passes. O(effort).
Program with_pairs(const Program& program, const Problem& problem, Bytes limit, double effort);

// Each block as its forward and then its backward. O(passes).
Program without_pairs(const Program& program);

}  // namespace pipesim
