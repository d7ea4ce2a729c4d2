#include "sim/engine/lanes.h"

#include <algorithm>
#include <cstdint>

#include "sim/core/error.h"
#include "sim/core/large_vector.h"
#include "sim/engine/device_sums.h"
#include "sim/engine/jitter.h"
#include "sim/engine/lane_replay.h"

namespace pipesim {
namespace {

constexpr size_t kWidth = 8;  // lanes that are computed together
// So few are taken one by one: a block of eight, of which the rest is for nothing, takes longer.
constexpr size_t kFew = 2;
// Runs of a larger graph are drawn one by one, so that their ends do not take more than a GiB.
constexpr size_t kMostTasksInLanes = (size_t{1} << 30) / (kWidth * sizeof(double));
// Tasks whose factors are drawn before they are replayed: they stay in the cache.
constexpr size_t kDrawnAtOnce = 512;

std::vector<Role> roles_of(const TaskGraph& graph) {
  std::vector<Role> roles;
  roles.reserve(graph.classes().size());
  for (const TaskClass& of : graph.classes()) {
    roles.push_back(role_of(of, static_cast<std::uint32_t>(graph.devices())));
  }
  return roles;
}

std::vector<JitteredClass> jittered_classes(const TaskGraph& graph) {
  std::vector<JitteredClass> classes;
  classes.reserve(graph.classes().size());
  for (const TaskClass& of : graph.classes()) {
    classes.push_back({of.seconds.value(), of.kind == TaskKind::kCompute});
  }
  return classes;
}

LaneArrays arrays_of(const TaskGraph& graph, const std::vector<Role>& roles,
                     LargeVector<double>& ends) {
  return {{graph.row_starts().data(), graph.edges().data()},
          graph.class_of().data(),
          roles.data(),
          ends.data(),
          0,
          graph.size()};
}

// The loops for whichever vector there is.
#ifdef PIPESIM_HAS_AVX2_LANES
void replay_lanes_of(const LaneArrays& of, Sums<AvxLanes>& sums, const double* seconds) {
  replay_classes_avx2(of, sums, seconds);
}
void replay_lanes_of(const LaneArrays& of, Sums<AvxLanes>& sums, const JitteredClass* classes,
                     const double* factors) {
  replay_jittered_avx2(of, sums, classes, factors);
}
#endif
template <class Vector>
void replay_lanes_of(const LaneArrays& of, Sums<Vector>& sums, const double* seconds) {
  replay_classes(of, sums, seconds);
}
template <class Vector>
void replay_lanes_of(const LaneArrays& of, Sums<Vector>& sums, const JitteredClass* classes,
                     const double* factors) {
  replay_jittered(of, sums, classes, factors);
}

// Calls `run` with the sums of eight lanes.
template <class Run>
void in_eight(const TaskGraph& graph, [[maybe_unused]] LaneVectors vectors, const Run& run) {
#ifdef PIPESIM_HAS_AVX2_LANES
  if (vectors == LaneVectors::kBest && __builtin_cpu_supports("avx2") != 0) {
    Sums<AvxLanes> sums(graph.devices());
    return run(sums);
  }
#endif
  Sums<EightLanes<2>> sums(graph.devices());
  run(sums);
}

template <class Vector>
void add_times(const Sums<Vector>& sums, size_t lanes, std::vector<RunTimes>& times) {
  for (size_t lane = 0; lane < lanes; ++lane) times.push_back(sums.times(lane));
}

// One run for each of `draws`, a lane each.
template <class Vector>
void replay_drawn(LaneArrays arrays, Sums<Vector>& sums, const std::vector<JitteredClass>& classes,
                  std::span<Jitter> draws) {
  const size_t tasks = arrays.last;
  std::vector<double> factors(kDrawnAtOnce * kLanesOf<Vector>, 1.0);
  for (; arrays.first < tasks; arrays.first = arrays.last) {
    arrays.last = std::min(arrays.first + kDrawnAtOnce, tasks);
    const std::span of(arrays.class_of + arrays.first, arrays.class_of + arrays.last);
    const auto passes = std::ranges::count_if(of, [&](auto at) { return classes[at].draws; });
    for (size_t lane = 0; lane < draws.size(); ++lane) {
      draws[lane].draw(static_cast<size_t>(passes), &factors[lane], kLanesOf<Vector>);
    }
    replay_lanes_of(arrays, sums, classes.data(), factors.data());
  }
}

void check_iterations(const TaskGraph& graph) {
  if (graph.iterations() != 1) throw LogicError("lanes: a graph of several iterations");
}

}  // namespace

std::vector<double> seconds_of(std::span<const TaskClass> classes) {
  std::vector<double> seconds;
  seconds.reserve(classes.size());
  for (const TaskClass& of : classes) seconds.push_back(of.seconds.value());
  return seconds;
}

std::vector<RunTimes> replay_lanes(const TaskGraph& graph,
                                   std::span<const std::vector<double>> seconds,
                                   LaneVectors vectors) {
  const size_t classes = graph.classes().size();
  check_iterations(graph);
  for (const auto& each : seconds) {
    if (each.size() != classes) throw LogicError("lanes: another number of seconds than expected");
  }
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
    in_eight(graph, vectors, [&](auto& sums) {
      replay_lanes_of(arrays, sums, side_by_side.data());
      add_times(sums, lanes, times);
    });
  }
  for (const auto& each : seconds.subspan(times.size())) {
    Sums<OneLane> sums(graph.devices());
    replay_classes(arrays, sums, each.data());
    add_times(sums, 1, times);
  }
  return times;
}

std::vector<RunTimes> replay_jittered(const TaskGraph& graph, double sigma,
                                      std::uint64_t first_seed, size_t runs, LaneVectors vectors) {
  check_iterations(graph);
  const std::vector<Role> roles = roles_of(graph);
  const std::vector<JitteredClass> classes = jittered_classes(graph);
  const bool wide = runs > kFew && graph.size() <= kMostTasksInLanes;
  LargeVector<double> end(graph.size() * (wide ? kWidth : 1));
  const LaneArrays arrays = arrays_of(graph, roles, end);
  std::vector<RunTimes> times;
  times.reserve(runs);
  while (times.size() < runs) {
    const size_t left = runs - times.size();
    const bool eight = wide && left > kFew;
    const size_t lanes = eight ? std::min(kWidth, left) : 1;
    std::vector<Jitter> draws;
    for (size_t lane = 0; lane < lanes; ++lane) {
      draws.emplace_back(sigma, first_seed + times.size() + lane);
    }
    const auto run = [&](auto&& sums) {
      replay_drawn(arrays, sums, classes, draws);
      add_times(sums, lanes, times);
    };
    if (eight) {
      in_eight(graph, vectors, run);
    } else {
      run(Sums<OneLane>(graph.devices()));
    }
  }
  return times;
}

}  // namespace pipesim
