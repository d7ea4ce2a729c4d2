// Work on each schedule of a scenario that can be met.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "sim/case/case.h"
#include "sim/report/json/document.h"

namespace pipesim {

// Calls `work` with the case of every schedule that can be met. Returns the others; InfeasibleError
// where there is none. Ends after the case at work once `stop` is set.
std::vector<RefusedSchedule> each_feasible(const std::shared_ptr<const Scenario>& scenario,
                                           const std::atomic<bool>& stop,
                                           const std::function<void(Case)>& work);

}  // namespace pipesim
