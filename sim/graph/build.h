// From programs to the task graph that an engine executes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/core/units.h"
#include "sim/execution/comm_batches.h"
#include "sim/graph/task_graph.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// When the next iteration may start (docs/reference/model.md, "Time").
enum class OptimizerSync {
  kNone,            // as kAllReduce, at no cost: for costs without an optimizer
  kAllReduce,       // after all devices have ended their passes and optimizer steps
  kPostValidation,  // each device after its own passes and optimizer step (Zero Bubble, section 4),
                    // and those of its position in the other pipelines, with which it reduces
                    // gradients
};

// What a message costs alone on its way.
struct MessageCost {
  Seconds seconds;  // latency included
  Seconds latency;
};

struct BuildOptions {
  int iterations = 1;
  OptimizerSync sync = OptimizerSync::kNone;
  Seconds collective;  // the gradient-norm reduction that closes an iteration under kAllReduce
  Seconds optimizer;   // one device's optimizer step
  // Where devices differ, by device: the step in place of `optimizer`, and what each does with its
  // gradients before the reduction that joins all. Empty: as above, and nothing.
  std::vector<Seconds> optimizer_of_device = {};
  std::vector<Seconds> gradients_of_device = {};
  // Cost of a message from virtual stage `from` to `to` between two ranks of the cluster. Empty:
  // the problem's transfer seconds, no latency.
  std::function<MessageCost(int from, int to, int rank_from, int rank_to)> message;
  // Factor on all compute seconds of a device (a straggler), by rank. Empty: 1.
  std::vector<double> slowdown_of_rank;
  // Transfers hold the compute stream, in the calls of this framework (comm_batches.h). Empty: they
  // overlap it.
  std::optional<CallGroups> blocking = {};
  // Copies share host links by contention, not by the order of their plan: each device copies one
  // after the other in each direction, and takes this share of the problem's seconds while its
  // link is silent otherwise. Empty: links carry one copy at a time in each direction, as planned.
  std::optional<double> contending_copies = {};
};

// The graph of `ranks.size()` identical pipelines, `ranks[i][d]` being where device d of pipeline i
// stands in the cluster. O(tasks). Throws InfeasibleError naming the passes when the program has a
// cycle or blocking transfers hold devices for good; when transfers are to be blocking and the
// vocabulary is sharded or there are copies to the host; and when there are more than 2^32 edges.
TaskGraph build_task_graph(const std::shared_ptr<const Program>& program, const Problem& problem,
                           const std::vector<std::vector<int>>& ranks, const BuildOptions& options);

// One pipeline on ranks 0..p-1.
TaskGraph build_task_graph(const std::shared_ptr<const Program>& program, const Problem& problem,
                           const BuildOptions& options = {});

}  // namespace pipesim
