// Anyone's order refined on its own placement: never longer, within a limit.
#pragma once

#include <memory>
#include <optional>

#include "sim/case/case.h"
#include "sim/search/bound.h"
#include "sim/search/refine.h"

namespace pipesim {

struct Improved {
  Case before, after;  // undisturbed, by replay; `after` is a program read from nowhere
  // The problem for programs without a schedule's own runtime cost: B and W run apart, which in a
  // model may take longer than one fused backward.
  Problem apart;
  Seconds seconds_before, seconds_after;  // the iteration
  Bytes peak_before, peak_after;
  Bytes limit;
  bool held_back = false;  // the order was above the limit and others stand in for it
  // The iteration of `after` from its CSV, which has no calls of a schedule's own. With transfers
  // that hold devices it may be longer, or infinite: the devices wait for each other.
  Seconds seconds_as_csv;
  // Times by the objective of `apart`, without the step that closes an iteration. `time_before` is
  // of the order as it came, evaluated. `time` is of the improved one, simulated where transfers
  // hold devices. `bound` is the lower bound for this placement within the limit.
  Seconds time_before, time, bound;
  BoundReason reason;
};

// Never longer than the order as it came, which stays where nothing shorter is found. The limit is
// `limit`, or else the most that the order itself holds. An order above it is held back
// (held_back.h). Where one pipeline runs F, B and W, schedules of the same placement that plan
// within a limit are then tried too.
//
// Neighbours are joined into overlapped blocks where those take less than their passes
// (sim/planning/pairs.h), and the blocks of the best are refined. Blocks that the order has are
// taken apart and joined anew. Backwards that are whole are refined so too, where that takes or
// holds less (refine_whole.h). Where transfers hold devices, orders are simulated
// (refine_blocking.h).
//
// `others`: the schedules are tried in any case, as a start for proofs. With it, and without a
// limit, an order without blocks has the most that it holds with B and W apart.
//
// InfeasibleError for a limit below one microbatch, copies, a sharded vocabulary and iterations
// that run into each other. With `others` also for what proofs do not know: two directions,
// sequence splits, recomputation, and a way back that is not always waited for. Likewise for
// transfers that hold devices, and unequal microbatches that overtake each other.
Improved improve(const Case& made, std::optional<Bytes> limit, const RefineOptions& options,
                 bool others = false);

// The limit's unit: p x the activation of one microbatch on a device, 1 each where none is known.
Bytes unit_of_limit(const Case& made);

}  // namespace pipesim
