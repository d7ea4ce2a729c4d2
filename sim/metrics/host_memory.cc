#include "sim/metrics/host_memory.h"

#include <algorithm>

namespace pipesim {
namespace {

struct Change {
  double seconds = 0;
  double bytes = 0;
  std::uint32_t device = 0;
};

std::vector<Change> changes_of(const TaskGraph& graph, const Timeline& timeline) {
  std::vector<Change> changes;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskClass& of = graph.task_class(task);
    if (of.kind == TaskKind::kCopyOut) {
      changes.push_back({timeline.start[task], of.released.value(), of.device});
    } else if (of.kind == TaskKind::kCopyIn) {
      changes.push_back({timeline.end[task], -of.acquired.value(), of.device});
    }
  }
  std::ranges::stable_sort(changes, [](const Change& a, const Change& b) {
    return a.seconds < b.seconds || (a.seconds == b.seconds && a.bytes < b.bytes);
  });
  return changes;
}

// A sum that remembers its largest value.
struct Level {
  double now = 0;
  double peak = 0;
  void add(double bytes) { peak = std::max(peak, now += bytes); }
};

std::vector<Bytes> peaks_of(const std::vector<Level>& levels) {
  std::vector<Bytes> peaks;
  for (const Level& level : levels) peaks.emplace_back(level.peak);
  return peaks;
}

}  // namespace

HostPeaks host_peaks(const TaskGraph& graph, const Timeline& timeline,
                     std::span<const std::vector<NodeShare>> shares) {
  std::uint32_t count = 0;
  for (const auto& of_device : shares) {
    for (const NodeShare& share : of_device) count = std::max(count, share.node + 1);
  }
  std::vector<Level> devices(graph.devices());
  std::vector<Level> nodes(count);
  for (const Change& change : changes_of(graph, timeline)) {
    devices[change.device].add(change.bytes);
    if (shares.empty()) continue;
    for (const NodeShare& share : shares[change.device]) {
      nodes[share.node].add(share.share * change.bytes);
    }
  }
  return {peaks_of(devices), peaks_of(nodes)};
}

}  // namespace pipesim
