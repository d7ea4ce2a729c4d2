// The schedules of a scenario side by side, for the commands that take several.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/prepare/advice.h"
#include "sim/report/json/json.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Calls `work` with the case of every schedule of the scenario, in their order. Returns those that
// cannot be met, for which there is no case or `work` throws InfeasibleError; where no other is
// left, InfeasibleError says why of each. On a terminal the schedule at work is shown meanwhile.
std::vector<RefusedSchedule> each_feasible(Scenario scenario,
                                           const std::function<void(const Case&)>& work);

struct Comparison {
  std::vector<Answer> answers;  // of the schedules that can be met; at least one
  std::vector<RefusedSchedule> refused;
};

// Simulates every schedule, as each_feasible does.
Comparison compare(Scenario scenario, Detail detail = Detail::kCauses);

// The names of their schedules, for one_path_each.
std::vector<std::string> names_of(std::span<const Answer> answers);

}  // namespace pipesim
