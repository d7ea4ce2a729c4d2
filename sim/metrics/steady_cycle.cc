#include "sim/metrics/steady_cycle.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace pipesim {
namespace {

// Iterations with as many microbatches as devices, and one more.
int compared(int devices, int microbatches) { return devices / microbatches + 1; }

// The starts of every device's passes, iteration after iteration.
class Starts {
 public:
  Starts(const TaskGraph& graph, const Timeline& timeline)
      : of_device_(static_cast<size_t>(graph.devices())) {
    for (auto& iterations : of_device_) iterations.resize(graph.iterations());
    for (TaskId task = 0; task < graph.size(); ++task) {
      const TaskClass& of = graph.task_class(task);
      if (of.kind != TaskKind::kCompute) continue;
      of_device_[of.device][graph.iteration(task)].push_back(timeline.start[task]);
    }
  }

  // True if `count` iterations from `first` on repeat `cycle` later, all after the same time.
  [[nodiscard]] bool repeat(int first, int count, int cycle, double relative) const {
    const double period = at(0, first + cycle).front() - at(0, first).front();
    for (size_t device = 0; device < of_device_.size(); ++device) {
      for (int i = first; i < first + count; ++i) {
        const auto same = [&](double now, double later) {
          return std::abs(later - now - period) <= relative * period;
        };
        if (!std::ranges::equal(at(device, i), at(device, i + cycle), same)) return false;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] const std::vector<double>& at(size_t device, int iteration) const {
    return of_device_[device][iteration];
  }

  std::vector<std::vector<std::vector<double>>> of_device_;
};

}  // namespace

std::optional<int> steady_cycle(const TaskGraph& graph, const Timeline& timeline, double relative) {
  const Shape& shape = graph.pipelines().front().program->shape();
  const Starts starts(graph, timeline);
  const int first = graph.iterations() / 2;
  const int count = compared(shape.devices, shape.microbatches / graph.iterations());
  // The last iteration holds the drain.
  for (int cycle = 1; first + count + cycle < graph.iterations(); ++cycle) {
    if (starts.repeat(first, count, cycle, relative)) return cycle;
  }
  return std::nullopt;
}

int fewest_streamed(int devices, int microbatches) {
  return 2 * compared(devices, microbatches) + 4;
}

}  // namespace pipesim
