// Memory over time as one list of events; peaks and curves are folds of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/core/units.h"
#include "sim/graph/task_graph.h"
#include "sim/graph/timeline.h"

namespace pipesim {

enum class MemoryCategory : std::uint8_t {
  kActivations,  // W stash included
};
inline constexpr std::string_view kActivationsName = "activations";

struct MemoryEvent {
  double seconds = 0;
  std::uint32_t device = 0;
  MemoryCategory category = MemoryCategory::kActivations;
  double delta_bytes = 0;
  TaskId task = 0;
};

inline constexpr int kEveryIteration = -1;

// True if the iteration holds the task's bytes.
inline bool holds_in(const TaskGraph& graph, TaskId task, int iteration) {
  if (graph.iterations() == 1 || iteration == kEveryIteration) return true;
  const int of = graph.iteration(task);
  return of == iteration || (graph.streams() && of < iteration);
}

// Calls `visit` for every event of one iteration, or of all; where iterations stream, also of those
// before it, whose microbatches are in flight. The events of a device come in order of time, at
// equal times releases first. A pass acquires at its start and releases at its end. With copies to
// the host all events come in order of time. O(tasks), with copies O(n log n).
template <class Visit>
void visit_memory_events(const TaskGraph& graph, const Timeline& timeline, int iteration,
                         Visit&& visit) {
  const auto of_tasks = [&](auto&& see) {
    for (TaskId task = 0; task < graph.size(); ++task) {
      const TaskClass& of = graph.task_class(task);
      if (of.acquired == Bytes(0) && of.released == Bytes(0)) continue;
      if (!holds_in(graph, task, iteration)) continue;
      if (of.acquired != Bytes(0)) {
        see(MemoryEvent{timeline.start[task], of.device, MemoryCategory::kActivations,
                        of.acquired.value(), task});
      }
      if (of.released != Bytes(0)) {
        see(MemoryEvent{timeline.end[task], of.device, MemoryCategory::kActivations,
                        -of.released.value(), task});
      }
    }
  };
  const bool copies = std::ranges::any_of(graph.pipelines(), [](const PipelineInstance& pipeline) {
    return !pipeline.program->memory_follows_order();
  });
  if (!copies) return of_tasks(visit);
  std::vector<MemoryEvent> events;
  of_tasks([&events](const MemoryEvent& event) { events.push_back(event); });
  std::ranges::stable_sort(events, [](const MemoryEvent& a, const MemoryEvent& b) {
    return a.seconds < b.seconds || (a.seconds == b.seconds && a.delta_bytes < b.delta_bytes);
  });
  for (const MemoryEvent& event : events) visit(event);
}

// A device's level after each of its events: the curve over time.
struct MemoryLevel {
  double seconds = 0;
  double bytes = 0;
};
std::vector<std::vector<MemoryLevel>> memory_curves(const TaskGraph& graph,
                                                    const Timeline& timeline, int iteration);

}  // namespace pipesim
