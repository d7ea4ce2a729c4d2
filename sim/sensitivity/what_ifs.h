// The values of a scenario that a sensitivity analysis multiplies, one by one. A value comes with
// its name, whether a scenario has it, and how to change it.
//
// A change is made on the scenario as read, as if a person had written the other number. So a
// bandwidth reaches messages and collectives alike, and a slow device changes the run but not the
// plan. Pure: nothing is simulated here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/prepare/advice.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// How the value reads before and after, with its unit.
struct ValueChange {
  std::string from;
  std::string to;
  // The factor that was applied, where it is not the one asked for: no efficiency is above 1, and
  // counts are whole.
  std::optional<double> applied = {};
};

struct WhatIf {
  std::string_view name;  // "network bandwidth"
  // The scenario's key, "cluster.network.bandwidth", or the GPU's in a calibration file.
  std::string_view key;
  // Why multiplying it would change nothing that the scenario knows; empty when it may. The
  // scenario has one schedule.
  std::string (*lacks)(const Scenario&);
  // Requires that the scenario has it. `base` is the answer for the scenario as it is. Throws
  // InfeasibleError where the value cannot be multiplied so.
  ValueChange (*multiply)(Scenario&, const Answer& base, double factor);
};

// In the order in which they are explained: network, devices, memory, work, given costs.
std::span<const WhatIf> what_ifs();

}  // namespace pipesim
