// Executes a task graph: the contract that all engines share.
//
// A task starts when all that it waits for has ended, and takes its seconds; messages overlap
// compute. Deterministic: the same input gives the same timeline to the last bit. Engines only
// execute; what a pass costs stands in the graph, what numbers mean stands in sim/metrics.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "models/cluster.h"
#include "sim/graph/task_graph.h"
#include "sim/graph/timeline.h"

namespace pipesim {

class Engine {
 public:
  virtual ~Engine() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;

  // `seconds` replaces the duration of every task (see `jittered`); empty: those of its class.
  // Throws InfeasibleError when the graph cannot be executed, LogicError when a task did not
  // finish.
  [[nodiscard]] virtual Timeline run(const TaskGraph& graph, const Cluster& cluster,
                                     std::span<const double> seconds) const = 0;

  // One timeline per set of seconds, in their order; engines with costly set-up share it.
  [[nodiscard]] virtual std::vector<Timeline> run_all(
      const TaskGraph& graph, const Cluster& cluster,
      std::span<const std::vector<double>> seconds) const;
};

// The contention-free engine: a task starts at the latest end of its inputs. One loop over flat
// arrays in topological order, no allocation per task, O(tasks + edges).
std::unique_ptr<Engine> make_replay_engine();

}  // namespace pipesim
