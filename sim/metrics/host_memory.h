// Bytes that activations take of the host's memory, as a fold over the copies of a timeline.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/units.h"
#include "sim/graph/task_graph.h"
#include "sim/graph/timeline.h"

namespace pipesim {

// How much of a device's bytes stands in a node's memory: a device has several GPUs, maybe on
// several nodes.
struct NodeShare {
  std::uint32_t node = 0;  // from 0, without gaps
  double share = 0;
};

struct HostPeaks {
  std::vector<Bytes> devices;  // by TaskClass::device: the most that it has on the host
  std::vector<Bytes> nodes;
};

// An activation takes room on the host from the start of its copy out to the end of its copy in. At
// equal times releases come first. Counts all iterations of the graph, since overlapping ones share
// the host too. `shares` by device; empty: no node is known. O(n log n) of n copies.
HostPeaks host_peaks(const TaskGraph& graph, const Timeline& timeline,
                     std::span<const std::vector<NodeShare>> shares);

}  // namespace pipesim
