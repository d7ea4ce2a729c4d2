// A cluster as models need it: its GPU, its collectives, the ways of messages and of host copies.
#pragma once

#include <string>

#include "models/cluster.h"
#include "models/collective.h"
#include "models/gpu.h"
#include "sim/core/units.h"

namespace pipesim {

// Between a GPU and its host's memory.
struct HostLink {
  BytesPerSecond alone{1};   // one direction, the GPU alone on its switch
  BytesPerSecond duplex{1};  // each direction, both at once and every GPU of the switch copying
  int gpus_per_switch = 1;
  Bytes memory;  // of a node
};

struct Hardware {
  std::string name;
  Gpu gpu;
  Interconnect interconnect;
  Cluster cluster;
  HostLink host;
};

}  // namespace pipesim
