#include "sim/engine/lanes.h"

#include <algorithm>
#include <cstdint>

#include "sim/core/error.h"
#include "sim/core/large_vector.h"
#include "sim/engine/device_sums.h"
#include "sim/engine/lane_replay.h"

namespace pipesim {
namespace {

constexpr size_t kWidth = 8;  // lanes that are computed together
// So few are taken one by one: a block of eight, of which the rest is for nothing, takes longer.
constexpr size_t kFew = 2;

std::vector<Role> roles_of(const TaskGraph& graph) {
  std::vector<Role> roles;
  roles.reserve(graph.classes().size());
  for (const TaskClass& of : graph.classes()) {
    roles.push_back(role_of(of, static_cast<std::uint32_t>(graph.devices())));
  }
  return roles;
}

LaneArrays arrays_of(const TaskGraph& graph, const std::vector<Role>& roles,
                     LargeVector<double>& ends) {
  return {{graph.row_starts().data(), graph.edges().data()},
          graph.class_of().data(),
          roles.data(),
          ends.data(),
          graph.size()};
}

template <class Vector>
void add_times(const Sums<Vector>& sums, size_t lanes, std::vector<RunTimes>& times) {
  for (size_t lane = 0; lane < lanes; ++lane) times.push_back(sums.times(lane));
}

// The first `lanes` of eight.
void add_eight(const TaskGraph& graph, const LaneArrays& arrays, const double* seconds,
               size_t lanes, [[maybe_unused]] LaneVectors vectors, std::vector<RunTimes>& times) {
#ifdef PIPESIM_HAS_AVX2_LANES
  if (vectors == LaneVectors::kBest && __builtin_cpu_supports("avx2") != 0) {
    Sums<AvxLanes> sums(graph.devices());
    replay_eight_avx2(arrays, sums, seconds);
    return add_times(sums, lanes, times);
  }
#endif
  Sums<EightLanes<2>> sums(graph.devices());
  replay_eight(arrays, sums, seconds);
  add_times(sums, lanes, times);
}

void check(const TaskGraph& graph, size_t seconds, size_t wanted) {
  if (graph.iterations() != 1) throw LogicError("lanes: a graph of several iterations");
  if (seconds != wanted) throw LogicError("lanes: another number of seconds than expected");
}

}  // namespace

std::vector<RunTimes> replay_lanes(const TaskGraph& graph,
                                   std::span<const std::vector<double>> seconds,
                                   LaneVectors vectors) {
  const size_t classes = graph.classes().size();
  for (const auto& each : seconds) check(graph, each.size(), classes);
  const std::vector<Role> roles = roles_of(graph);
  LargeVector<double> end(graph.size() * (seconds.size() > kFew ? kWidth : 1));
  const LaneArrays arrays = arrays_of(graph, roles, end);
  std::vector<RunTimes> times;
  times.reserve(seconds.size());
  std::vector<double> side_by_side(classes * kWidth);
  while (seconds.size() - times.size() > kFew) {
    const auto left = seconds.subspan(times.size());
    const size_t lanes = std::min(kWidth, left.size());
    for (size_t of = 0; of < classes; ++of) {
      // The last one stands for those that lack.
      for (size_t lane = 0; lane < kWidth; ++lane) {
        side_by_side[of * kWidth + lane] = left[std::min(lane, lanes - 1)][of];
      }
    }
    add_eight(graph, arrays, side_by_side.data(), lanes, vectors, times);
  }
  for (const auto& each : seconds.subspan(times.size())) {
    Sums<OneLane> sums(graph.devices());
    replay(arrays, sums,
           [&each, &arrays](size_t task) { return each.data() + arrays.class_of[task]; });
    times.push_back(sums.times(0));
  }
  return times;
}

RunTimes replay_tasks(const TaskGraph& graph, std::span<const double> seconds) {
  check(graph, seconds.size(), graph.size());
  const std::vector<Role> roles = roles_of(graph);
  LargeVector<double> end(graph.size());
  Sums<OneLane> sums(graph.devices());
  replay(arrays_of(graph, roles, end), sums, [seconds](size_t task) { return &seconds[task]; });
  return sums.times(0);
}

}  // namespace pipesim
