// Sums of each device over the tasks of one iteration, in one lane or in several side by side. They
// add in the order of the tasks, so that every way to run them gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/engine/lane_vector.h"
#include "sim/graph/device_times.h"
#include "sim/graph/task_graph.h"

namespace pipesim {

// By device, as TaskClass::device numbers them.
using RunTimes = std::vector<DeviceTimes>;

template <class Vector>
struct DeviceLanes {
  Vector first_start{std::numeric_limits<double>::infinity()};
  Vector last_end;
  Vector pass_busy;
  Vector busy;  // once it closes its iteration
  Vector recompute;
  bool closes = false;
};

// The effect of a class's tasks on their device.
struct Role {
  enum class Also : std::uint8_t { kNothing, kRecompute, kClosing, kAllDevices };
  // Row of the sums. Tasks beside compute have a row that nobody reads, so that the loop needs no
  // branch.
  std::uint32_t row = 0;
  Also also = Also::kNothing;
};

inline Role role_of(const TaskClass& of, std::uint32_t devices) {
  switch (of.kind) {
    case TaskKind::kCompute:
      return {of.device, work_of(of.pass).again ? Role::Also::kRecompute : Role::Also::kNothing};
    case TaskKind::kOptimizer:
      return {of.device + devices, Role::Also::kClosing};
    case TaskKind::kCollective:
      return {of.device + devices, Role::Also::kAllDevices};
    default:
      return {of.device + devices};
  }
}

template <class Vector>
class Sums {
 public:
  explicit Sums(size_t devices) : rows_(2 * devices) {}

  // The next task of its device, in every lane from `start` to `end`.
  [[gnu::always_inline]] void count(const Role& role, const Vector& start, const Vector& end) {
    DeviceLanes<Vector>& device = rows_[role.row];
    Vector taken = end;
    taken -= start;
    device.first_start.keep_smaller(start);
    device.last_end = end;
    device.pass_busy += taken;
    if (role.also != Role::Also::kNothing) [[unlikely]]
      add(role, taken, end);
  }

  [[nodiscard]] RunTimes times(size_t lane) const {
    RunTimes times;
    times.reserve(rows_.size() / 2);
    for (const DeviceLanes<Vector>& device : std::span(rows_).first(rows_.size() / 2)) {
      times.push_back({device.first_start[lane], device.last_end[lane], device.pass_busy[lane],
                       device.closes ? device.busy[lane] : device.pass_busy[lane],
                       device.recompute[lane], closing_end_[lane]});
    }
    return times;
  }

 private:
  void add(const Role& role, const Vector& seconds, const Vector& end) {
    if (role.also == Role::Also::kAllDevices) {
      closing_end_ = end;
    } else if (role.also == Role::Also::kRecompute) {
      rows_[role.row].recompute += seconds;
    } else {
      DeviceLanes<Vector>& device = rows_[role.row - rows_.size() / 2];
      if (!device.closes) device.busy = device.pass_busy;
      device.closes = true;
      device.busy += seconds;
    }
  }

  std::vector<DeviceLanes<Vector>> rows_;  // of devices, then those that are not read
  Vector closing_end_;
};

}  // namespace pipesim
