// How a program becomes a task graph (build.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/core/units.h"
#include "sim/graph/optimizer_sync.h"
#include "sim/pipeline/call_groups.h"

namespace pipesim {

// The cost of a message alone on its way.
struct MessageCost {
  Seconds seconds;  // latency included
  Seconds latency;
};

// Under kAsynchronous: the program has the microbatches of all iterations, one after the other.
struct Stream {
  std::uint32_t units = 0;  // of one iteration, which begins on a device with the first F of them
  std::uint32_t units_per_step = 0;  // after the BW or W of so many, a device steps
  friend bool operator==(const Stream&, const Stream&) = default;
};

struct BuildOptions {
  int iterations = 1;
  OptimizerSync sync = OptimizerSync::kNone;
  std::optional<Stream> stream = {};
  Seconds collective;  // the gradient-norm reduction that closes an iteration under kAllReduce
  Seconds optimizer;   // one device's optimizer step
  // Where devices differ, by device: the step in place of `optimizer`, and what each does with its
  // gradients before the reduction that joins all. Empty: as above, and nothing.
  std::vector<Seconds> optimizer_of_device = {};
  std::vector<Seconds> gradients_of_device = {};
  // Cost of a unit's message from virtual stage `from` to `to` between two ranks of the cluster.
  // Empty: the problem's transfer seconds, no latency.
  std::function<MessageCost(int from, int to, int rank_from, int rank_to, std::uint32_t unit)>
      message;
  // Factor on all compute seconds of a device (a straggler), by rank. Empty: 1.
  std::vector<double> slowdown_of_rank;
  // Transfers hold the compute stream, in the calls of this framework (comm_batches.h). Empty: they
  // overlap it.
  std::optional<CallGroups> blocking = {};
  // Copies share host links by contention, not by the order of their plan. Each device copies one
  // after the other in each direction. Alone on its link, a copy takes this share of the problem's
  // seconds. Empty: links carry one copy at a time in each direction, as planned.
  std::optional<double> contending_copies = {};
};

}  // namespace pipesim
