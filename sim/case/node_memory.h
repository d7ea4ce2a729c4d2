// A case's use of its nodes' memory: activations that its schedule or its modules offload, and the
// optimizer states that the host updates.
#pragma once

#include <optional>
#include <vector>

#include "sim/case/case.h"
#include "sim/graph/task_graph.h"
#include "sim/graph/timeline.h"
#include "sim/pipeline/program.h"

namespace pipesim {

struct HostMemory {
  std::vector<Bytes> devices;    // the peak of one GPU of each, by DeviceReport::device
  std::vector<Bytes> optimizer;  // of that, what stands there all the time
  // The peak of the node that holds most, what of that are optimizer states, and the node's size,
  // where the cluster says so.
  std::optional<Bytes> node = {};
  Bytes node_optimizer = {};
  std::optional<Bytes> capacity = {};

  [[nodiscard]] bool fits() const { return !node || !capacity || *node <= *capacity; }
};

// The optimizer states alone, of the node that holds most of them: no run takes less. O(devices).
Bytes optimizer_on_node(const Case& made);

// Empty where nothing waits on the host. `graph` and `timeline` time the copies of a program that
// has any; otherwise neither is read. Activations that modules offload are there from the start of
// a unit's F to the end of its B. A node with GPUs of several devices counts the sum of their
// peaks, which they need not reach at once. Units that differ count as the largest. O(passes), or
// O(n log n) of n copies.
std::optional<HostMemory> host_memory_of(const Case& made, const Program& program,
                                         const TaskGraph* graph, const Timeline& timeline);

}  // namespace pipesim
