// When a task can start: the inner loop of the contention-free engine.
#pragma once

#include <cstdint>

#include "sim/engine/lane_vector.h"
#include "sim/graph/task_graph.h"

namespace pipesim {

struct EdgeRows {
  const std::uint32_t* row;
  const TaskId* edge;
};

// `ready`, 0 before: in every lane the latest end of the task's inputs; `end` has the lanes of a
// task together.
template <class Vector>
[[gnu::always_inline]] inline void ready_after(const EdgeRows& of, size_t task, const double* end,
                                               Vector& ready) {
  const std::uint32_t first = of.row[task];
  const std::uint32_t after = of.row[task + 1];
  const auto wait_for = [&ready, end](TaskId waited) {
    Vector ended;
    ended.load(end + size_t{waited} * kLanesOf<Vector>);
    ready.keep_larger(ended);
  };
  // One or two, as nearly always: without a branch, which the processor could not foretell.
  if (after - first - 1 < 2) [[likely]] {
    wait_for(of.edge[first]);
    wait_for(of.edge[after - 1]);
  } else {
    for (std::uint32_t e = first; e < after; ++e) wait_for(of.edge[e]);
  }
}

}  // namespace pipesim
