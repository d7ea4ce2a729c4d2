#include "sim/metrics/memory_curve.h"

namespace pipesim {

std::vector<std::vector<MemoryLevel>> memory_curves(const TaskGraph& graph,
                                                    const Timeline& timeline, int iteration) {
  std::vector<std::vector<MemoryLevel>> curves(graph.devices());
  visit_memory_events(graph, timeline, iteration, [&curves](const MemoryEvent& event) {
    auto& curve = curves[event.device];
    const double before = curve.empty() ? 0 : curve.back().bytes;
    curve.push_back({event.seconds, before + event.delta_bytes});
  });
  return curves;
}

}  // namespace pipesim
