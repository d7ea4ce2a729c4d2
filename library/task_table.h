// The tasks of a simulation as columns.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/graph/task_graph.h"

namespace pipesim {

// Worked out from the class and the number of each task; -1 where one has none.
struct TaskTable {
  explicit TaskTable(const TaskGraph& graph);

  std::vector<std::uint8_t> kind, pass;  // TaskKind, PassKind
  std::vector<std::int32_t> device, receiver, stage, microbatch, iteration;
};

}  // namespace pipesim
