// Copies to the host as a case has them: their seconds, the ways that they share, and the memory of
// a node that they fill.
#pragma once

#include <optional>
#include <vector>

#include "models/cluster.h"
#include "sim/case/case.h"
#include "sim/graph/task_graph.h"
#include "sim/graph/timeline.h"

namespace pipesim {

// Seconds of copies, where they are not given, follow from the bytes that F acquires and the host
// links of a cluster by name (docs/reference/model.md, "Offload"). For make_case, once bytes are
// known. O(stages).
void add_host_links(Case& made);

// The way of a rank's copies where they contend. Without a cluster by name copies only have the
// share of their links in common, whatever their bandwidth, and messages have another way.
HostWay host_way(const Case& made);

// What activations take on the host.
struct HostMemory {
  std::vector<Bytes> devices;  // of one GPU of each, by DeviceReport::device
  // Of the node that holds most, and its size, where the cluster says so.
  std::optional<Bytes> node = {};
  std::optional<Bytes> capacity = {};

  [[nodiscard]] bool fits() const { return !node || !capacity || *node <= *capacity; }
};

// Empty without copies.
std::optional<HostMemory> host_memory_of(const Scenario& scenario, const TaskGraph& graph,
                                         const Timeline& timeline);

}  // namespace pipesim
