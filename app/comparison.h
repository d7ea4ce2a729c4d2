// The schedules of a scenario side by side, for the commands that take several.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/case/simulate.h"
#include "sim/report/json/json.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Calls `work` with every schedule of the scenario, in their order. Those for which it throws
// InfeasibleError are taken out of the scenario and returned; where none is left, InfeasibleError
// says why of each. On a terminal the schedule at work is shown meanwhile.
std::vector<RefusedSchedule> leave_feasible(Scenario& scenario,
                                            const std::function<void(const ScheduleChoice&)>& work);

// What was simulated: `scenario` holds only the schedules that were, in the order of `simulations`.
struct Comparison {
  Scenario scenario;
  std::vector<Simulation> simulations;
  std::vector<RefusedSchedule> refused;
};

// Simulates every schedule, as leave_feasible does.
Comparison compare(Scenario scenario);

// A line each: the schedule, and why it is refused.
std::string refusals(std::span<const RefusedSchedule> refused);

}  // namespace pipesim
