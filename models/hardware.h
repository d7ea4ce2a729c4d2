// A cluster as models need it: its GPU, its collectives, the ways of messages and of host copies.
#pragma once

#include <string>

#include "models/cluster.h"
#include "models/collective.h"
#include "models/gpu.h"
#include "sim/core/units.h"

namespace pipesim {

// Bytes a second that a node's CPUs move while they update optimizer states. Every host is assumed
// to reach CPU-Adam's rate: 10 billion parameters of 30 bytes in 2.57 s (ZeRO-Offload, arXiv
// 2101.06840, table 4).
inline constexpr BytesPerSecond kHostUpdate{117e9};

// Between a GPU and its host's memory.
struct HostLink {
  BytesPerSecond alone{1};   // one direction, the GPU alone on its switch
  BytesPerSecond duplex{1};  // each direction, both at once and every GPU of the switch copying
  int gpus_per_switch = 1;
  Bytes memory;  // of a node
  BytesPerSecond update = kHostUpdate;
};

// A GPU's rate on its link while all GPUs copy: one way, or each way with both at once.
inline BytesPerSecond one_way(const HostLink& host) { return host.alone / host.gpus_per_switch; }
inline BytesPerSecond each_way(const HostLink& host) { return host.duplex / host.gpus_per_switch; }

struct Hardware {
  std::string name;
  Gpu gpu;
  Interconnect interconnect;
  Cluster cluster;
  HostLink host;
  // Standard deviation of its GPUs' seconds of compute, to their mean (models/slowest.h).
  double variation = 0;
};

}  // namespace pipesim
