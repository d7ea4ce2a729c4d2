#include "sim/core/stop.h"
#include "sim/engine/engine.h"
#include "sim/engine/ready.h"

namespace pipesim {
namespace {

constexpr size_t kBetweenStops = 1 << 16;  // less than a millisecond

class ReplayEngine final : public Engine {
 public:
  [[nodiscard]] std::string_view name() const override { return "replay"; }

  [[nodiscard]] Timeline run(const TaskGraph& graph, const Cluster& /*cluster*/,
                             std::span<const double> seconds) const override {
    Timeline timeline;
    timeline.start.resize(graph.size());
    timeline.end.resize(graph.size());
    if (seconds.empty()) {
      std::vector<double> of_class;
      of_class.reserve(graph.classes().size());
      for (const TaskClass& task : graph.classes()) of_class.push_back(task.seconds.value());
      const std::uint32_t* class_of = graph.class_of().data();
      replay(graph, timeline, [&of_class, class_of](size_t i) { return of_class[class_of[i]]; });
    } else {
      replay(graph, timeline, [seconds](size_t i) { return seconds[i]; });
    }
    return timeline;
  }

 private:
  template <class SecondsOf>
  static void replay(const TaskGraph& graph, Timeline& timeline, SecondsOf seconds_of) {
    const EdgeRows rows{graph.row_starts().data(), graph.edges().data()};
    double* start = timeline.start.data();
    double* end = timeline.end.data();
    const size_t tasks = graph.size();
    for (size_t task = 0; task < tasks; ++task) {
      if (task % kBetweenStops == 0) check_stop();
      OneLane ready;
      ready_after(rows, task, end, ready);
      start[task] = ready[0];
      end[task] = ready[0] + seconds_of(task);
    }
  }
};

}  // namespace

std::vector<Timeline> Engine::run_all(const TaskGraph& graph, const Cluster& cluster,
                                      std::span<const std::vector<double>> seconds) const {
  std::vector<Timeline> timelines;
  timelines.reserve(seconds.size());
  for (const auto& each : seconds) timelines.push_back(run(graph, cluster, each));
  return timelines;
}

std::unique_ptr<Engine> make_replay_engine() { return std::make_unique<ReplayEngine>(); }

}  // namespace pipesim
