// Where ranks stand and which shared resources a message between two of them uses.
//
// A node holds `gpus_per_node` GPUs behind a switch, with a port up and a port down per GPU of
// `link_bandwidth`. It has `nics_per_node` NICs, each with a side up and a side down of
// `nic_bandwidth`. GPU g of a node uses NIC g * nics / gpus. The network between the NICs has full
// bisection. Ranks fill nodes in order. Pure values: no engine and no clock.
#pragma once

#include <optional>
#include <vector>

#include "sim/core/units.h"

namespace pipesim {

// The part of its way that a message over a NIC shares with copies to the host.
enum class CardWay {
  kApart,     // nothing that is known
  kPort,      // the GPU's port: its NIC is behind the same PCIe switch
  kHostLink,  // the port and the link of the switch to the host, behind which the NIC is
};

// The way of a GPU's copies: its port, then the link to the host that the GPUs of its switch share.
struct HostWay {
  BytesPerSecond port{1e9};   // of a GPU, each way
  BytesPerSecond alone{1e9};  // one direction of the link, nothing else on it
  double duplex = 1;  // of that, what each direction keeps while both are busy; 1/2 at least
  CardWay cards = CardWay::kApart;
};

struct Cluster {
  int gpus_per_node = 1;
  int nics_per_node = 1;
  BytesPerSecond link_bandwidth{1e9};
  Seconds link_latency;
  BytesPerSecond nic_bandwidth{1e9};
  Seconds nic_latency;
  // Shares of a GPU that a concurrent message, and a copy to or from the host, take from compute
  // (engine simgrid, gpu: host). None where not given.
  std::optional<double> message_share;
  std::optional<double> copy_share;
  // Power of a GPU that waits and that computes, for energy accounting (engine simgrid, gpu: host).
  std::optional<Watts> idle_power;
  std::optional<Watts> busy_power;
  HostWay host;                      // of a rank (engine simgrid)
  std::optional<Bytes> host_memory;  // of a node
};

// A way between two ranks.
struct Route {
  std::vector<int> resources;  // numbers of the shared one-way resources on the way
  BytesPerSecond bandwidth;    // of the narrowest of them
  Seconds latency;
  bool over_cards = false;
};

// Throws nothing; `from` and `to` are ranks >= 0, unequal.
Route route(const Cluster& cluster, int from, int to);

// Seconds of a message that has the way for itself.
Seconds message_seconds(const Cluster& cluster, int from, int to, Bytes size);

}  // namespace pipesim
