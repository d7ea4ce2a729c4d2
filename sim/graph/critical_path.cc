#include "sim/graph/critical_path.h"

#include <algorithm>

namespace pipesim {

std::vector<TaskId> critical_path(const TaskGraph& graph, const Timeline& timeline) {
  if (graph.size() == 0) return {};
  const auto ends_later = [&timeline](TaskId a, TaskId b) {
    return timeline.end[a] < timeline.end[b];
  };
  const auto last = std::ranges::max_element(timeline.end) - timeline.end.begin();
  std::vector<TaskId> path{static_cast<TaskId>(last)};
  for (auto waited = graph.waits_for(path.back()); !waited.empty();
       waited = graph.waits_for(path.back())) {
    path.push_back(*std::ranges::max_element(waited, ends_later));
  }
  std::ranges::reverse(path);
  return path;
}

}  // namespace pipesim
