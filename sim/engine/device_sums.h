// What each device comes to while the tasks of one iteration go by, in one lane or in several side
// by side: sums in the order of the tasks, so that every way to run them comes to the same bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/graph/device_times.h"
#include "sim/graph/task_graph.h"

namespace pipesim {

// By device, as TaskClass::device numbers them.
using RunTimes = std::vector<DeviceTimes>;

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

inline Role role_of(const TaskClass& of, std::uint32_t devices) {
  switch (of.kind) {
    case TaskKind::kCompute:
      return {of.device, of.pass == PassKind::kR ? Role::Also::kRecompute : Role::Also::kNothing};
    case TaskKind::kOptimizer:
      return {of.device + devices, Role::Also::kClosing};
    case TaskKind::kCollective:
      return {of.device + devices, Role::Also::kAllDevices};
    default:
      return {of.device + devices};
  }
}

template <size_t kLanes>
class Sums {
 public:
  explicit Sums(size_t devices) : rows_(2 * devices) {}

  // The next task of its device, in every lane from `start` to `end`.
  [[gnu::always_inline]] void count(const Role& role, const Lanes<kLanes>& start,
                                    const Lanes<kLanes>& end) {
    DeviceLanes<kLanes>& device = rows_[role.row];
    Lanes<kLanes> taken;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      taken[lane] = end[lane] - start[lane];
      device.first_start[lane] = std::min(device.first_start[lane], start[lane]);
      device.last_end[lane] = end[lane];
      device.pass_busy[lane] += taken[lane];
    }
    if (role.also != Role::Also::kNothing) [[unlikely]]
      add(role, taken, end);
  }

  [[nodiscard]] RunTimes times(size_t lane) const {
    RunTimes times;
    times.reserve(rows_.size() / 2);
    for (const DeviceLanes<kLanes>& device : std::span(rows_).first(rows_.size() / 2)) {
      times.push_back({device.first_start[lane], device.last_end[lane], device.pass_busy[lane],
                       device.closes ? device.busy[lane] : device.pass_busy[lane],
                       device.recompute[lane], closing_end_[lane]});
    }
    return times;
  }

 private:
  void add(const Role& role, const Lanes<kLanes>& seconds, const Lanes<kLanes>& end) {
    if (role.also == Role::Also::kAllDevices) {
      closing_end_ = end;
    } else if (role.also == Role::Also::kRecompute) {
      for (size_t lane = 0; lane < kLanes; ++lane) rows_[role.row].recompute[lane] += seconds[lane];
    } else {
      DeviceLanes<kLanes>& device = rows_[role.row - rows_.size() / 2];
      if (!device.closes) device.busy = device.pass_busy;
      device.closes = true;
      for (size_t lane = 0; lane < kLanes; ++lane) device.busy[lane] += seconds[lane];
    }
  }

  std::vector<DeviceLanes<kLanes>> rows_;  // of devices, then those that are not read
  Lanes<kLanes> closing_end_{};
};

}  // namespace pipesim
