// A lower bound on the time of programs, by the problem's objective, from the windows of passes. A
// window is two least times. One runs from the start of a device's first pass to the start of a
// pass downstream. The other runs from that pass's end to the end of the device's last.
//
// Microbatches pass a stage in order. Where they cost alike that loses nothing: a fact about the
// n-th pass of a kind on a stage holds for any microbatch. Where they do not (Problem::kinds) it
// bounds programs in which none overtakes another. Each then counts with its own seconds, and with
// the bytes of the one that keeps least. A window follows from a pass's inputs, from the passes
// that must run on its device before or after it, and from memory. Where a device holds k
// microbatches of a stage, F of microbatch n+k waits for B of n. The bound is
//   - of every device, that of one machine with heads and tails whose jobs may be interrupted
//     (Jackson's preemptive schedule, as in Carlier 1982);
//   - of every device and every other e behind it, the way to e, all F and B on e, the way back.
// The more windows there are, the fewer devices are looked at, the first always, and no more than
// asked for. O(windows + passes of a device x log) for each.
#pragma once

#include <limits>

#include "sim/pipeline/problem.h"

namespace pipesim {

struct WindowsBound {
  Seconds seconds;
  int device = 0;        // whose windows say so
  bool through = false;  // the way through another device and back
  Seconds after;         // the last of its passes: of a device alone
};

// Requires a problem with one direction; `limit` is one device's, at least one microbatch. Bytes
// that are all zero count as one per stage and microbatch.
WindowsBound bound_of_windows(const Problem& problem, Bytes limit,
                              int most_devices = std::numeric_limits<int>::max());

}  // namespace pipesim
