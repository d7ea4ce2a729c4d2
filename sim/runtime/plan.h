// An execution's input, and its simulation: for execution.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/case/case.h"
#include "sim/graph/task_graph.h"
#include "sim/graph/timeline.h"
#include "sim/runtime/board.h"
#include "sim/runtime/script.h"

namespace pipesim::runtime {

struct ExecutionPlan {
  std::shared_ptr<const Program> program;
  std::unique_ptr<TaskGraph> graph;  // of the first pipeline and one iteration
  std::vector<double> seconds;       // by task, scaled
  Timeline timeline;                 // without contention
  double scale = 1;
  double simulated = 0;  // from the first pass to the end of the last
  int waits = 0;         // tasks of the critical path that take time
  Semantics semantics = Semantics::kAsynchronous;
  std::vector<DeviceScript> scripts;
};

// How long what is executed takes.
enum class Pace : std::uint8_t {
  kTimed,  // as simulated, scaled so that a pass takes `mean_pass` seconds at the mean
  kFree,   // as long as it needs
};

// Throws as make_program, build_task_graph and scripts_of do.
ExecutionPlan plan_execution(const Case& made, Pace pace, double mean_pass, bool torch);

// The first task that did not run after all that it waits for, or did not run at all, in words;
// empty: none.
std::string disorder_of(const ExecutionPlan& plan, std::span<const DeviceRecord> records);

}  // namespace pipesim::runtime
