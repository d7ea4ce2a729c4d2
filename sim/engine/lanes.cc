#include "sim/engine/lanes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "sim/core/error.h"
#include "sim/core/large_vector.h"
#include "sim/engine/ready.h"

namespace pipesim {
namespace {

constexpr size_t kWidth = 8;  // lanes that stay in registers together
// So few are taken one by one: a block of eight, of which the rest is for nothing, takes longer.
constexpr size_t kFew = 2;

template <size_t kLanes>
using Lanes = std::array<double, kLanes>;

template <size_t kLanes>
struct DeviceLanes {
  DeviceLanes() { first_start.fill(std::numeric_limits<double>::infinity()); }
  Lanes<kLanes> first_start;
  Lanes<kLanes> last_end{};
  Lanes<kLanes> pass_busy{};
  Lanes<kLanes> busy{};  // once it closes its iteration
  Lanes<kLanes> recompute{};
  bool closes = false;
};

// What tasks of a class are to their device.
struct Role {
  enum class Also : std::uint8_t { kNothing, kRecompute, kClosing, kAllDevices };
  // Of its sums. What takes nothing of a device's compute stream has sums that nobody reads: no
  // branch has to be foretold.
  std::uint32_t row = 0;
  Also also = Also::kNothing;
};

std::vector<Role> roles_of(const TaskGraph& graph) {
  const auto unread = static_cast<std::uint32_t>(graph.devices());
  std::vector<Role> roles;
  roles.reserve(graph.classes().size());
  for (const TaskClass& of : graph.classes()) {
    Role& role = roles.emplace_back(Role{of.device + unread});
    if (of.kind == TaskKind::kCollective) role.also = Role::Also::kAllDevices;
    if (of.kind == TaskKind::kOptimizer) role = {of.device + unread, Role::Also::kClosing};
    if (of.kind != TaskKind::kCompute) continue;
    role.row = of.device;
    if (of.pass == PassKind::kR) role.also = Role::Also::kRecompute;
  }
  return roles;
}

template <size_t kLanes>
struct Sums {
  explicit Sums(const TaskGraph& graph) : rows(size_t{2} * graph.devices()) {}

  void add(const Role& role, const Lanes<kLanes>& seconds, const double* end) {
    if (role.also == Role::Also::kAllDevices) {
      std::copy_n(end, kLanes, closing_end.begin());
    } else if (role.also == Role::Also::kRecompute) {
      for (size_t lane = 0; lane < kLanes; ++lane) rows[role.row].recompute[lane] += seconds[lane];
    } else {
      DeviceLanes<kLanes>& device = rows[role.row - rows.size() / 2];
      if (!device.closes) device.busy = device.pass_busy;
      device.closes = true;
      for (size_t lane = 0; lane < kLanes; ++lane) device.busy[lane] += seconds[lane];
    }
  }

  [[nodiscard]] RunTimes times(size_t lane) const {
    RunTimes times;
    times.reserve(rows.size() / 2);
    for (const DeviceLanes<kLanes>& device : std::span(rows).first(rows.size() / 2)) {
      times.push_back({device.first_start[lane], device.last_end[lane], device.pass_busy[lane],
                       device.closes ? device.busy[lane] : device.pass_busy[lane],
                       device.recompute[lane], closing_end[lane]});
    }
    return times;
  }

  std::vector<DeviceLanes<kLanes>> rows;  // of devices, then those that are not read
  Lanes<kLanes> closing_end{};
};

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
  DeviceLanes<kLanes>* devices = sums.rows.data();
  for (size_t task = 0; task < of.tasks; ++task) {
    const auto ready = ready_after<kLanes>(of.rows, task, of.end);
    const double* seconds = seconds_of(task);
    double* end = of.end + task * kLanes;
    const Role role = of.role[of.class_of[task]];
    DeviceLanes<kLanes>& device = devices[role.row];
    Lanes<kLanes> taken;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      end[lane] = ready[lane] + seconds[lane];
      taken[lane] = end[lane] - ready[lane];
      device.first_start[lane] = std::min(device.first_start[lane], ready[lane]);
      device.last_end[lane] = end[lane];
      device.pass_busy[lane] += taken[lane];
    }
    if (role.also != Role::Also::kNothing) [[unlikely]]
      sums.add(role, taken, end);
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
    Sums<kWidth> sums(graph);
    replay_eight(arrays, sums, side_by_side.data());
    for (size_t lane = 0; lane < lanes; ++lane) times.push_back(sums.times(lane));
  }
  for (const auto& each : seconds.subspan(times.size())) {
    Sums<1> sums(graph);
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
  Sums<1> sums(graph);
  replay(Arrays(graph, roles, end), sums, [seconds](size_t task) { return &seconds[task]; });
  return sums.times(0);
}

}  // namespace pipesim
