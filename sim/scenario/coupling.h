// The coupling of iterations and devices that a scenario and one of its schedules ask for.
#pragma once

#include <optional>

#include "sim/graph/coupling.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// The calls in which transfers hold the devices of a schedule. Empty where they overlap compute:
// because the scenario says so, or because the schedule's runtime is asynchronous.
std::optional<CallGroups> calls_of(Transfers transfers, const Schedule& schedule);

// A schedule that never drains streams, whatever the scenario says. A program from a CSV file names
// no framework: one call before every pass. InputError where the scenario asks that of a schedule
// that drains.
Coupling coupling_of(const Scenario& scenario, const ScheduleChoice& choice);

}  // namespace pipesim
