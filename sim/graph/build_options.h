// How a program becomes a task graph (build.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/core/units.h"
#include "sim/graph/coupling.h"

namespace pipesim {

// The cost of a message alone on its way.
struct MessageCost {
  Seconds seconds;  // latency included
  Seconds latency;
};

struct BuildOptions : Coupling {
  int iterations = 1;
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
  // Copies share host links by contention, not by the order of their plan. Each device copies one
  // after the other in each direction. Alone on its link, a copy takes this share of the problem's
  // seconds. Empty: links carry one copy at a time in each direction, as planned.
  std::optional<double> contending_copies = {};
};

}  // namespace pipesim
