// How long the training that a plan is for takes with failures.
#pragma once

#include <optional>

#include "sim/goodput/goodput.h"
#include "sim/layouts/report.h"
#include "sim/scenario/reliability.h"

namespace pipesim {

// Training over all time, when the plan's first row trains on `tokens`. Nothing where no row is
// named, and where a run would never end or takes over `max_steps` checkpoints and failures.
std::optional<double> goodput_of_first(const ClusterPlan& plan, double tokens,
                                       const Reliability& reliability,
                                       double max_steps = GoodputQuestion().max_steps);

// Days of training on `tokens` with the plan's first row, checkpoints, failures and restarts
// included, as `pipesim goodput` has them by its usual reliability. Nothing as above.
std::optional<double> days_with_failures(const ClusterPlan& plan, double tokens);

}  // namespace pipesim
