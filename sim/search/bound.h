// A lower bound on the time of every program of a placement under a limit on activation memory, by
// the problem's objective.
//
// For each device, the larger of what that device alone allows (sim/planning/device_bound.h) and
// what the windows of its passes allow (sim/planning/windows.h). A makespan adds the way of the
// first F to that device.
#pragma once

#include <algorithm>
#include <string>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/device_bound.h"
#include "sim/planning/windows.h"

namespace pipesim {

Seconds lower_bound(const Problem& problem, Bytes limit);

// True if units of unequal cost overtake each other in the program. Its time may be below a bound,
// except for slices, whose bound holds in any order.
bool overtakes_unequally(const Program& program, const Problem& problem);

// The cause that holds a bound up.
enum class BoundHolder {
  kWork,       // of the busiest device
  kStart,      // a device's time before the first passes, or until the first B comes back
  kDrain,      // its time after the last F, until the last B is done
  kMemory,     // without the limit the bound is less
  kRoundTrip,  // the way through another device and back
};

struct BoundReason {
  BoundHolder holder = BoundHolder::kWork;
  int device = 0;  // whose time it is
  Seconds idle;    // of the bound, beyond its device's work
};

// The bound in its two parts. O(that of the bound).
struct Bound {
  DeviceBoundParts alone;
  WindowsBound windows;
  [[nodiscard]] Seconds seconds() const { return std::max(alone.seconds, windows.seconds); }
};
Bound bound_in_parts(const Problem& problem, Bytes limit);

// The same of programs whose passes may be joined into overlapped blocks (sim/planning/pairs.h).
Bound bound_with_pairs(const Problem& problem, Bytes limit);
Seconds bound_with_pairs_without_limit(const Problem& problem);
BoundReason reason_of_bound_with_pairs(const Problem& problem, Bytes limit);

// More bytes than all microbatches in flight at once.
Bytes no_limit(const Problem& problem);

// The bound of programs whose memory is plenty.
Seconds bound_without_limit(const Problem& problem);

// O(that of the bound), or with that and the one without a limit known O(1).
BoundReason reason_of_bound(const Problem& problem, Bytes limit);
BoundReason reason_of_bound(const Problem& problem, const Bound& bound, Seconds without_limit);

// "the drain: device 3 waits 1.2 ms beside its work"
std::string to_text(const BoundReason& reason);

// Means besides passes by which programs may stay within the limit.
struct Relief {
  int recompute_chunks = 0;  // of every device, from the first: these recompute
  bool copies = false;       // any activation may wait on the host

  friend bool operator==(const Relief&, const Relief&) = default;
};

// The same of programs with this relief, which only adds R to their passes: the bound without a
// limit, and of each device
//   - its work, R included;
//   - the bytes times seconds that its microbatches must hold at least, over the limit. From F to R
//     they hold F's bytes, less those on the host; in R and B all bytes; in W, W's bytes.
Seconds lower_bound(const Problem& problem, Bytes limit, const Relief& relief);

}  // namespace pipesim
