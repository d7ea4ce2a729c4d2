#include "sim/metrics/memory_curve.h"

namespace pipesim {

std::vector<std::vector<MemoryLevel>> memory_curves(const TaskGraph& graph,
                                                    const Timeline& timeline, int iteration) {
  std::vector<std::vector<MemoryLevel>> curves(graph.devices());
  std::vector<double> held(curves.size(), 0);
  visit_memory_events(graph, timeline, iteration, [&](const MemoryEvent& event) {
    double& bytes = held[event.device];
    bytes += event.delta_bytes;
    const bool before = graph.streams() && graph.iteration(event.task) < iteration;
    if (!before) curves[event.device].push_back({event.seconds, bytes});
  });
  return curves;
}

}  // namespace pipesim
