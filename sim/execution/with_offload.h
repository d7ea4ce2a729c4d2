// Activation offload as a transform of a program. Activations that lie idle between F and B wait on
// the host. Source: PipeOffload, Wan et al. 2025, arXiv 2503.01328, section 4.
//
// No copy lengthens the iteration as planned. An activation goes out as soon as its F has ended and
// its link is free, and comes back as late as it can. It stays on the device when the link could
// not bring it back in time. Where a link cannot carry all, those with the longest lifespans go.
// They are of all that may, of fewer chunks or of every second microbatch, whichever keeps least
// (link_plan.h). Forwards before the first backward of a device start as late as their microbatches
// allow, so that copies out can make room for them.
#pragma once

#include <vector>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// Which activations may leave.
struct OffloadScope {
  int chunks = 0;                       // so many of every device, those that live longest,
  std::vector<int> which = {};          // or these of every device
  std::vector<bool> microbatches = {};  // whether one of this number may; empty: all. Where not all
                                        // may, no fewer are tried
};

// True if the problem asks for copies that the program lacks: they are planned behind it.
inline bool awaits_offload(const Program& program, const Problem& problem) {
  return problem.offload_chunks > 0 && program.copies() == nullptr;
}

// Host links, copy seconds and prefetch as the problem says. O(n log n) of n passes. Throws
// InfeasibleError as `walk` does.
Program with_offload(const Program& program, const Problem& problem, const OffloadScope& scope);
inline Program with_offload(const Program& program, const Problem& problem, int chunks) {
  return with_offload(program, problem, OffloadScope{.chunks = chunks});
}

}  // namespace pipesim
