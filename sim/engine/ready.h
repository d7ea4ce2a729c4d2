// When a task can start: the inner loop of the contention-free engine.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/graph/task_graph.h"

namespace pipesim {

struct EdgeRows {
  const std::uint32_t* row;
  const TaskId* edge;
};

// In every lane the latest end of what the task waits for; `end` has the lanes of a task together.
template <size_t kLanes>
[[gnu::always_inline]] inline std::array<double, kLanes> ready_after(const EdgeRows& of,
                                                                     size_t task,
                                                                     const double* end) {
  const std::uint32_t first = of.row[task];
  const std::uint32_t after = of.row[task + 1];
  std::array<double, kLanes> ready{};
  const auto wait_for = [&ready, end](TaskId waited) {
    const double* ended = end + size_t{waited} * kLanes;
    for (size_t lane = 0; lane < kLanes; ++lane) ready[lane] = std::max(ready[lane], ended[lane]);
  };
  // One or two, as nearly always: without a branch, which the processor could not foretell.
  if (after - first - 1 < 2) [[likely]] {
    wait_for(of.edge[first]);
    wait_for(of.edge[after - 1]);
  } else {
    for (std::uint32_t e = first; e < after; ++e) wait_for(of.edge[e]);
  }
  return ready;
}

}  // namespace pipesim
