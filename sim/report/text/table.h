// Results for people: a table that compares schedules, idle time by cause, and peaks per device.
#pragma once

#include <span>
#include <string>

#include "sim/case/simulate.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// One row per schedule: iteration time, the three bubble rates, peak activation, throughput.
std::string comparison_table(const Scenario& scenario, std::span<const Simulation> simulations);

// One row per device of one schedule: busy, idle by cause, peak activation and where it occurs.
std::string device_table(const Scenario& scenario, const Simulation& simulation);

// The comparison as CSV with units in the column names; empty cells where nothing applies.
std::string comparison_csv(const Scenario& scenario, std::span<const Simulation> simulations);

// Memory over time: the level of every device after each change, by category.
std::string memory_csv(const Scenario& scenario, std::span<const Simulation> simulations);

// The passes and messages of the chain that decides the last end, in one line.
std::string critical_path_line(const Simulation& simulation);

}  // namespace pipesim
