#include "sim/engine/lanes.h"

#include <algorithm>
#include <cstdint>

#include "sim/core/error.h"
#include "sim/core/large_vector.h"
#include "sim/engine/device_sums.h"
#include "sim/engine/ready.h"

namespace pipesim {
namespace {

constexpr size_t kWidth = 8;  // lanes that stay in registers together
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

struct Arrays {
  Arrays(const TaskGraph& graph, const std::vector<Role>& roles, LargeVector<double>& ends)
      : rows{graph.row_starts().data(), graph.edges().data()},
        class_of(graph.class_of().data()),
        role(roles.data()),
        end(ends.data()),
        tasks(graph.size()) {}
  EdgeRows rows;
  const std::uint32_t* class_of;
  const Role* role;
  double* end;
  size_t tasks;
};

// `seconds_of(task)`: those of all lanes.
template <size_t kLanes, class SecondsOf>
[[gnu::always_inline]] inline void replay(const Arrays& of, Sums<kLanes>& sums,
                                          const SecondsOf& seconds_of) {
  for (size_t task = 0; task < of.tasks; ++task) {
    const auto ready = ready_after<kLanes>(of.rows, task, of.end);
    const double* seconds = seconds_of(task);
    Lanes<kLanes> end;
    for (size_t lane = 0; lane < kLanes; ++lane) end[lane] = ready[lane] + seconds[lane];
    std::ranges::copy(end, of.end + task * kLanes);
    sums.count(of.role[of.class_of[task]], ready, end);
  }
}

// The processor's own vectors where the compiler can choose at run time: no sum is contracted.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
[[gnu::target_clones("avx2", "default")]]
#endif
void replay_eight(const Arrays& of, Sums<kWidth>& sums, const double* seconds) {
  replay(of, sums, [&of, seconds](size_t task) { return seconds + of.class_of[task] * kWidth; });
}

void check(const TaskGraph& graph, size_t seconds, size_t wanted) {
  if (graph.iterations() != 1) throw LogicError("lanes: a graph of several iterations");
  if (seconds != wanted) throw LogicError("lanes: another number of seconds than expected");
}

}  // namespace

std::vector<RunTimes> replay_lanes(const TaskGraph& graph,
                                   std::span<const std::vector<double>> seconds) {
  const size_t classes = graph.classes().size();
  for (const auto& each : seconds) check(graph, each.size(), classes);
  const std::vector<Role> roles = roles_of(graph);
  LargeVector<double> end(graph.size() * (seconds.size() > kFew ? kWidth : 1));
  const Arrays arrays(graph, roles, end);
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
    Sums<kWidth> sums(graph.devices());
    replay_eight(arrays, sums, side_by_side.data());
    for (size_t lane = 0; lane < lanes; ++lane) times.push_back(sums.times(lane));
  }
  for (const auto& each : seconds.subspan(times.size())) {
    Sums<1> sums(graph.devices());
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
  Sums<1> sums(graph.devices());
  replay(Arrays(graph, roles, end), sums, [seconds](size_t task) { return &seconds[task]; });
  return sums.times(0);
}

}  // namespace pipesim
