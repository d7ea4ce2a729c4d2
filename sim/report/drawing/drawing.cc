#include "sim/report/drawing/drawing.h"

#include <algorithm>
#include <cmath>

namespace pipesim {

Drawing::Drawing(const Result& result)
    : timeline_(result.timeline), passes_(result.program->shape().devices) {
  const TaskGraph& graph = *result.graph;
  const int middle = graph.iterations() / 2;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskClass& of = graph.task_class(task);
    if (of.kind != TaskKind::kCompute || of.device >= devices()) continue;
    if (graph.iteration(task) != middle) continue;
    passes_[of.device].push_back(task);
    begin_ = std::min(begin_, timeline_.start[task]);
    end_ = std::max(end_, timeline_.end[task]);
  }
}

size_t Drawing::size() const {
  size_t passes = 0;
  for (const auto& each : passes_) passes += each.size();
  return passes;
}

std::vector<TaskId> Drawing::columns(size_t device, size_t columns) const {
  std::vector<TaskId> owner(columns, kNoTask);
  std::vector<double> most(columns, 0);
  const double scale = static_cast<double>(columns) / seconds();
  for (const TaskId pass : passes_[device]) {
    const double from = start(pass) * scale;
    const double to = end(pass) * scale;
    const auto last = std::min(columns, static_cast<size_t>(std::ceil(to)));
    for (auto c = static_cast<size_t>(from); c < last; ++c) {
      const double covered =
          std::min(to, static_cast<double>(c + 1)) - std::max(from, static_cast<double>(c));
      if (covered <= most[c]) continue;
      most[c] = covered;
      owner[c] = pass;
    }
  }
  return owner;
}

}  // namespace pipesim
