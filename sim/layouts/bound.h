// A time and a memory below which no run of a layout can be, found without planning or simulating.
//
// Time: a device runs all its passes, after the forwards that its first one waits for, and before
// the backwards upstream of its last one. Then reductions and the optimizer close the iteration.
// Where iterations overlap (optimizer.sync: post_validation) only a device's own work counts.
//
// Memory: a device's bytes beside activations, and those of one microbatch when its backward
// begins, or of as many as the schedule claims to hold. Where B and W are apart, only W's part.
// Both hold for the results of `simulate`, up to rounding, with any engine without jitter: nothing
// makes a message or a pass shorter than planned.
#pragma once

#include "sim/case/case.h"

namespace pipesim {

// Less than any bound is, by its rounding.
inline constexpr double kBelow = 1 - 1e-9;

// The seconds of all passes, shared evenly by the devices; of the layers of a kind where whole ones
// give a device more. It is cheaper and lower than the next. O(layers).
Seconds work_bound(const Outline& outline);

// Bytes that the device which holds most cannot be below, whatever the split, by an even share of
// what all devices hold together. It is cheaper and lower than the bound below. O(layers).
struct LeastMemory {
  Bytes beside;       // activations
  Bytes activations;  // of a unit in flight on every stage, where none leaves the device
};
LeastMemory least_memory(const Outline& outline);

struct RunBound {
  Seconds iteration;
  Bytes memory;  // of the device that holds most
};

// Requires a placement in one direction. O(stages).
RunBound run_bound(const Case& made);

}  // namespace pipesim
