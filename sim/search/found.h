// A program that a search has found, with its time, its peak and how it came about.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/layout.h"
#include "sim/case/node_memory.h"
#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// A schedule in its problem, which a search plans for.
struct Contender {
  ScheduleChoice choice;                   // what of it is recomputed and offloaded
  std::optional<Layout> layout = {};       // with a model
  std::vector<int> microbatch_order = {};  // as Case's
  Problem problem;
  // Where the schedule runs B and W as one pass, in less time: costs of the two apart, which
  // refinement runs.
  std::shared_ptr<const Problem> apart = {};
};

// A program and what it costs; `program` is planned or refined for `problem`.
struct Found : Contender {
  bool refined = false;
  std::shared_ptr<const Program> program = {};
  Seconds cost = {};  // Evaluation::cost
  Seconds makespan = {};
  Seconds time = {};  // the one of the two that is sought
  double bubble_rate = 0;
  double bubble_rate_busiest = 0;
  Bytes peak = {};  // largest of the devices
  // Where activations wait on the host and its size is known: whether they have room there.
  std::optional<HostMemory> host = {};
};

// `program` under `problem`, evaluated; the rest is the contender's. O(passes).
Found measure(const Contender& contender, const Problem& problem,
              std::shared_ptr<const Program> program);

// Less time first, then the one that keeps all, then the one that copies nothing, then less memory.
// Equal ones stay in the order of the registry.
bool better(const Found& a, const Found& b);

// True where every activation stays on its device.
bool stays(const Found& found);

// True where it keeps every activation on its device and runs no forward again.
bool keeps_all(const Found& found);

// True if both run the same order of passes of the same layers.
bool same_order(const Found& a, const Found& b);

// Within the limit but for rounding.
bool fits(const Found& found, Bytes limit);

// Shorter by more than rounding.
bool is_shorter(Seconds time, const Found& than);

}  // namespace pipesim
