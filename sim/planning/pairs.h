// Overlapped blocks in any order: neighbours of a device joined greedily.
//
// An F beside a BW, B or W of another microbatch, or beside a B and its W, becomes one block. The
// order must then take no longer and keep the limit. Combined 1F1B does this to plain 1F1B; here it
// applies to any order.
#pragma once

#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// True where a block of any two chunks of a device takes less than its two passes.
bool gains_by_pairs(const Problem& problem);

// Joins neighbours until no join helps, by the problem's objective. Makes three attempts, each of
// at most `effort` passes evaluated, and returns the shortest. One attempt joins neighbours singly,
// in rounds from the first pass to the last. The others start with all neighbours joined, each
// backward with the forward behind it, or before it. A block with BW is tried before one with B or
// W alone. The result is never longer than `program`, nor peaks above the larger of `limit` and its
// peak. A program with copies comes back unchanged, since its copies name passes. O(effort).
Program with_pairs(const Program& program, const Problem& problem, Bytes limit, double effort);

// Each block as its forward and then its backward. O(passes).
Program without_pairs(const Program& program);

}  // namespace pipesim
