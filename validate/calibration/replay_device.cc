#include "validate/calibration/replay_device.h"

#include <algorithm>
#include <utility>

#include "sim/engine/engine.h"
#include "sim/metrics/analyze.h"

namespace pipesim::calibration {
namespace {

// Passes that are enqueued and have not ended: enough for launches to be hidden behind work, few
// enough that memory is asked for about when it is needed.
constexpr std::size_t kAhead = 3;

}  // namespace

void RowFeeder::feed(std::uint32_t number, ReplayDevice& device) {
  const Action& action = row_.actions[number];
  if (action.lane == Lane::kCompute) {
    if (ahead_.size() == kAhead) {
      device.pace(ahead_.front());
      ahead_.pop_front();
    }
    ahead_.push_back(number);
  }
  for (const std::uint32_t other : action.waits_for) device.wait(action.lane, other);
  if (arrivals_ != Arrivals::kAtStart && action.arrival > row_.origin) {
    device.hold(action.lane, action.arrival);
  }
  for (const std::uint32_t block : action.acquires) device.acquire(action.lane, block);
  device.run(number);
  for (const std::uint32_t block : action.releases) device.release(action.lane, block);
}

Executed replay(const Row& row, Arrivals arrivals, ReplayDevice& device) {
  device.begin(row);
  RowFeeder feeder(row, arrivals);
  for (std::uint32_t number = 0; number < row.actions.size(); ++number) {
    feeder.feed(number, device);
  }
  return device.finish();
}

void retime(Result& result, const std::vector<StageContent>& stages, ReplayDevice& device) {
  const TaskGraph& graph = *result.graph;
  std::vector<double> of_class;
  std::vector<std::pair<DeviceWork, double>> known;
  for (const TaskClass& task : graph.classes()) {
    const bool here = task.kind == TaskKind::kCompute || task.kind == TaskKind::kCopyOut ||
                      task.kind == TaskKind::kCopyIn;
    if (!here) {
      of_class.push_back(task.seconds.value());
      continue;
    }
    const DeviceWork work = device_work(task, *result.program, stages);
    auto found = std::ranges::find(known, work, &std::pair<DeviceWork, double>::first);
    if (found == known.end()) {
      known.emplace_back(work, device.seconds_alone(work));
      found = known.end() - 1;
    }
    of_class.push_back(found->second);
  }
  std::vector<double> seconds(graph.size());
  for (std::size_t task = 0; task < seconds.size(); ++task) {
    seconds[task] = of_class[graph.class_of()[task]];
  }
  result.timeline = make_replay_engine()->run(graph, Cluster{}, seconds);
  result.report = analyze(graph, result.timeline);
}

}  // namespace pipesim::calibration
