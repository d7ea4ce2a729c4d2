#include "validate/reproduce/evaluated.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>

#include "sim/sweep/workers.h"

namespace pipesim::reproduce {
namespace {

void keep(std::vector<PointResult>& results, const WorkerEvent& event) {
  if (event.kind == WorkerEvent::Kind::kDied) {
    throw InfeasibleError(fmt::format("a process that evaluates points ended: {}", event.text));
  }
  PointResult result = point_from_bytes(event.text);
  if (result.outcome == PointResult::Outcome::kFault) throw InfeasibleError(result.reason);
  results.at(result.point) = std::move(result);
}

}  // namespace

std::vector<PointResult> evaluated(const Sweep& sweep, int processes) {
  const std::uint32_t count = sweep.points();
  // The points with the most work go first, one at a time: all processes end together.
  std::vector<std::uint32_t> left(count);
  for (std::uint32_t point = 0; point < count; ++point) left[point] = point;
  std::ranges::stable_sort(left, {},
                           [&](std::uint32_t point) { return sweep.weight(sweep.setting(point)); });
  Evaluator evaluate(sweep);
  LocalWorkers workers(std::clamp(processes, 1, static_cast<int>(count)),
                       [&evaluate](std::uint32_t point) { return to_bytes(evaluate(point)); });
  const auto give = [&](int worker) {
    if (left.empty()) return;
    workers.give(worker, std::span(&left.back(), 1));
    left.pop_back();
  };
  for (int worker = 0; worker < workers.count(); ++worker) give(worker);
  std::vector<PointResult> results(count);
  for (std::uint32_t done = 0; done < count;) {
    for (const WorkerEvent& event : workers.wait(100)) {
      keep(results, event);
      give(event.worker);
      ++done;
    }
  }
  return results;
}

}  // namespace pipesim::reproduce
