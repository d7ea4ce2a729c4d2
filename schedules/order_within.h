// Orders of other schedules, for planners that take the best of several within a memory limit.
#pragma once

#include <optional>
#include <string_view>

#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

struct OrderWithin {
  PassLists lists;
  Seconds cost;  // longest span of a device
};

// The order of the schedule for the same shape, as it is but for BW, which become B and W: none of
// its passes is later then, nor any peak higher. Nothing where it peaks above the limit. Requires a
// schedule that accepts the problem and whose directions and passes are those of F, B, W and BW.
// Takes what its plan takes.
std::optional<OrderWithin> order_within(std::string_view schedule, const Problem& problem,
                                        Bytes limit);

}  // namespace pipesim
