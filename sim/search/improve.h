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
  // Times by the objective of `apart`, without the step that closes an iteration. `time_before` is
  // of the order as it came, `time` of the improved one. `bound` is the lower bound for this
  // placement within the limit.
  Seconds time_before, time, bound;
  BoundReason reason;
};

// `others`: whether schedules of the same placement that plan within a limit are tried too. They
// are tried anyway where the order itself does not keep the limit. Without `limit`, the limit is
// the most that the order itself holds. With `others` and an order without blocks, it is the most
// that the order holds with B and W apart. Neighbours are joined into overlapped blocks where those
// take less than their passes (sim/planning/pairs.h), and the blocks of the best are refined.
// Blocks that the order has are taken apart and joined anew. The order is kept where nothing
// shorter is found. InfeasibleError for a limit below one microbatch, for two directions, sequence
// splits, recomputation, copies or a sharded vocabulary. Also for transfers that hold devices, and
// unequal microbatches that overtake each other.
Improved improve(const Case& made, std::optional<Bytes> limit, const RefineOptions& options,
                 bool others = false);

// The limit's unit: p x the activation of one microbatch on a device, 1 each where none is known.
Bytes unit_of_limit(const Case& made);

}  // namespace pipesim
