// Seconds of a scenario whose costs follow from its model and the GPUs of its cluster
// (docs/model.md, "Seconds"). All require Scenario::roofline.
#pragma once

#include "models/layer_cost.h"
#include "sim/pipeline/problem.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// How the choice's passes run. Megatron-LM's own schedules run B and W as one pass.
CostSetting cost_setting_of(const Scenario& scenario, const ScheduleChoice& choice);

// Seconds of every stage, message and share of the vocabulary of a problem whose placement and
// shape stand. Sequence splits share a microbatch's seconds evenly. O(stages).
void fill_roofline(const Scenario& scenario, const ScheduleChoice& choice, Problem& problem);

// What closes an iteration, of the device that takes longest: gradients, their norm unless the
// optimizer is validated afterwards, the optimizer's step, parameters. O(stages).
Seconds closing_seconds(const Scenario& scenario, const ScheduleChoice& choice);

}  // namespace pipesim
