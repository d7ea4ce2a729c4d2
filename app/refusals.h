// Schedules of a scenario that cannot be met, in words.
#pragma once

#include <span>
#include <string>

#include "sim/report/json/document.h"

namespace pipesim {

// A line each: the schedule, and why it is refused.
std::string refusals(std::span<const RefusedSchedule> refused);

// InfeasibleError with all of them, where no other is left.
[[noreturn]] void refuse_all(std::span<const RefusedSchedule> refused);

}  // namespace pipesim
