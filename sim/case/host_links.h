// Copies to the host as a scenario has them: their seconds, the ways that they share, and the
// memory of a node that they fill.
#pragma once

#include <optional>
#include <vector>

#include "models/cluster.h"
#include "sim/graph/task_graph.h"
#include "sim/graph/timeline.h"
#include "sim/pipeline/problem.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Seconds of copies, where they are not given, follow from the bytes that F acquires and the host
// links of a cluster by name (docs/reference/model.md, "Offload"). Requires the stages' bytes.
// O(stages).
void add_host_links(const Scenario& scenario, const ScheduleChoice& choice, Problem& problem);

// The way of a rank's copies where they contend. Without a cluster by name copies only have the
// share of their links in common, whatever their bandwidth, and messages have another way.
HostWay host_way(const Scenario& scenario, const ScheduleChoice& choice);

// What activations take on the host.
struct HostMemory {
  std::vector<Bytes> devices;  // of one GPU of each, by DeviceReport::device
  // Of the node that holds most, and its size, where the cluster says so.
  std::optional<Bytes> node = {};
  std::optional<Bytes> capacity = {};
  // Where it does not fit: what would, with fewer chunks or microbatches, and what that takes.
  // Empty: nothing that offloads.
  std::optional<ScheduleChoice> nearest = {};
  Bytes then = {};

  [[nodiscard]] bool fits() const { return !node || !capacity || *node <= *capacity; }
};

// Empty without copies. `nearest` is left open.
std::optional<HostMemory> host_memory_of(const Scenario& scenario, const TaskGraph& graph,
                                         const Timeline& timeline);

}  // namespace pipesim
