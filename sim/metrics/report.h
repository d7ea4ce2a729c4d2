// The numbers that pipesim reports, as values with units; docs/reference/model.md has their
// formulas
// ("Time", "Bubble", "Memory").
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/memory.h"
#include "sim/core/enum_array.h"
#include "sim/core/units.h"

namespace pipesim {

enum class IdleCause : std::uint8_t {
  kWarmUp,      // before the device's first backward
  kCoolDown,    // after its last forward
  kTransfer,    // a message on its way
  kCollective,  // a collective of all devices, or of a sharded vocabulary
  kHostCopy,    // an activation on its way to the host, or back
  kImbalance,   // upstream compute, on a stage that is slower than this one
  kOrder,       // upstream compute otherwise
};
inline constexpr std::array<std::string_view, 7> kIdleCauseNames{
    "warm_up", "cool_down", "transfer", "collective", "host_copy", "imbalance", "order"};
template <>
inline constexpr std::size_t kSizeOf<IdleCause> = kIdleCauseNames.size();
using IdleSeconds = EnumArray<IdleCause, Seconds>;

struct DeviceReport {
  int device = 0;     // pipeline * devices + position
  Seconds busy;       // passes and what closes the iteration on the device
  Seconds passes;     // of that
  Seconds recompute;  // of passes, R
  Seconds span;       // first pass start to last pass end
  Seconds idle;       // period - busy
  IdleSeconds idle_by_cause{};
  Bytes peak_activation;
  Seconds peak_time;      // after the start of the iteration
  std::string peak_pass;  // the pass whose start reaches the peak
  std::optional<double> energy_joules;
  std::optional<DeviceMemory> memory;  // beside activations, where a model says so

  [[nodiscard]] Seconds closing() const { return busy - passes; }
  // At the activations' peak: all else is held throughout.
  [[nodiscard]] std::optional<Bytes> peak_memory() const {
    return memory ? std::optional(memory->total() + peak_activation) : std::nullopt;
  }
};

// The period over several seeded runs.
struct Ensemble {
  int runs = 0;
  std::uint64_t seed = 0;
  double jitter = 0;
  Seconds mean, stddev, p05, p50, p95;
};

// True if the device with the largest span has less work than another, to a table's digits.
inline bool unequal_work(double bubble_rate, double bubble_rate_busiest) {
  return bubble_rate - bubble_rate_busiest > 5e-5;
}

struct Report {
  Seconds iteration;               // the period
  Seconds makespan;                // first pass start to last pass end of one iteration
  Seconds makespan_from_rest;      // the same of one before which all devices are idle
  Seconds cost;                    // largest device span
  double bubble_rate = 0;          // against the work of the device with that span
  double bubble_rate_busiest = 0;  // against the work of the device that has most
  double bubble_rate_makespan = 0;
  double bubble_over_ideal = 0;
  Bytes peak_activation;             // of the device that holds most
  std::optional<Bytes> peak_memory;  // likewise
  std::vector<DeviceReport> devices;
  std::optional<Ensemble> ensemble;
  size_t tasks = 0;

  [[nodiscard]] bool unequal_work() const {
    return pipesim::unequal_work(bubble_rate, bubble_rate_busiest);
  }
};

}  // namespace pipesim
