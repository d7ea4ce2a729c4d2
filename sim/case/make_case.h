// From a scenario and one of its schedules to a case, by arithmetic alone.
#pragma once

#include <memory>

#include "sim/case/case.h"

namespace pipesim {

// `costs` are those of another outline with the same setting; without they are computed. InputError
// at the choice when its schedule does not hold so many chunks. O(stages).
Outline outline_of(std::shared_ptr<const Scenario> scenario, ScheduleChoice choice,
                   std::shared_ptr<const LayerCosts> costs = nullptr);

Shape shape_of(const Outline& outline);

// Layers stand as the scenario says or, where it asks for balance, as in `balanced`. InputError at
// the split when layers cannot be divided so; InfeasibleError when a limit in total leaves nothing
// for activations. O(stages).
Case make_case(Outline outline, const Layout* balanced = nullptr);

}  // namespace pipesim
