#include "sim/engine/jitter.h"

#include <cmath>

namespace pipesim {

void Jitter::draw(size_t count, double* to, size_t apart) {
  const double mean = sigma_ * sigma_ / 2;
  for (size_t i = 0; i < count; ++i) to[i * apart] = std::exp(sigma_ * normal_(generator_) - mean);
}

std::vector<double> jittered(const TaskGraph& graph, double sigma, std::uint64_t seed) {
  Jitter jitter(sigma, seed);
  std::vector<double> seconds(graph.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskClass& of = graph.task_class(task);
    double factor = 1;
    if (of.kind == TaskKind::kCompute) jitter.draw(1, &factor, 1);
    seconds[task] = of.seconds.value() * factor;
  }
  return seconds;
}

}  // namespace pipesim
