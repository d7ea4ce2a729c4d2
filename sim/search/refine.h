// Improves a program by justification (sim/planning/justify.h), then by local search: passes move
// within their device's order, and what makes the iteration no longer is kept.
//
// A move takes one pass a few places forward or back; it must leave every device within the memory
// limit. Overlapped blocks of a program are moved too, joined and taken apart. An F joins a
// backward some places away, and leaves the one that it ran with. Now and then a slightly worse
// order is accepted (threshold accepting, falling to nothing). A trial is evaluated from the first
// time that the move can change. It is given up as soon as one device must be late, so that most
// trials cost a fraction of the program.
//
// A long program is first cut to one of few microbatches, by taking out repetitions of its steady
// state. The result is put back by repeating one. Deterministic for a seed: the effort is counted
// in passes evaluated, not in seconds. Where it is less than 300 evaluations of the program, no
// moves are tried.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/search/bound.h"

namespace pipesim {

struct RefineOptions {
  std::uint64_t seed = 1;
  double effort = 2e7;  // passes evaluated
  // No program of the problem takes less; where it is not known, `bound_like`.
  std::optional<Seconds> bound = {};
  // Asked now and then, from any thread; true ends refinement with its result so far.
  std::function<bool()> stop = [] { return false; };
};

// Never longer (by the problem's objective) than `program` with its BW split into B and W, and
// within `limit` on every device. Takes any program without copies and a sharded vocabulary; those
// come back as they are, as do programs that do not keep the limit. Where microbatches cost alike
// they come in their order; in others each kind of pass of a stage keeps its own (spelling.h). The
// cut to few microbatches and justification are for the former. O(effort + passes).
Program refine(const Program& program, const Problem& problem, Bytes limit,
               const RefineOptions& options);

}  // namespace pipesim
