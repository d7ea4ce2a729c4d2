// Where ranks stand and which shared resources a message between two of them uses.
//
// A node holds `gpus_per_node` GPUs behind a switch (a port up and a port down per GPU, of
// `link_bandwidth`) and `nics_per_node` network cards (an up and a down side each, of
// `nic_bandwidth`); GPU g of a node uses card g * nics / gpus. The network between the cards has
// full bisection. Ranks fill nodes in order. Pure values: no engine and no clock.
#pragma once

#include <optional>
#include <vector>

#include "sim/core/units.h"

namespace pipesim {

struct Cluster {
  int gpus_per_node = 1;
  int nics_per_node = 1;
  BytesPerSecond link_bandwidth{1e9};
  Seconds link_latency;
  BytesPerSecond nic_bandwidth{1e9};
  Seconds nic_latency;
  // Share of a GPU that a concurrent message takes from compute (engine simgrid, gpu: host).
  double message_share = 0;
  // Power of a GPU that waits and that computes, for energy accounting (engine simgrid, gpu: host).
  std::optional<Watts> idle_power;
  std::optional<Watts> busy_power;
};

// A way between two ranks.
struct Route {
  std::vector<int> resources;  // numbers of the shared one-way resources on the way
  BytesPerSecond bandwidth;    // of the narrowest of them
  Seconds latency;
};

// Throws nothing; `from` and `to` are ranks >= 0, unequal.
Route route(const Cluster& cluster, int from, int to);

// Seconds of a message that has the way for itself.
Seconds message_seconds(const Cluster& cluster, int from, int to, Bytes size);

}  // namespace pipesim
