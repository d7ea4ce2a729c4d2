// Seconds of a scenario whose costs follow from its model and the GPUs of its cluster
// (docs/reference/model.md, "Seconds"). All that does not say otherwise requires
// Scenario::roofline.
#pragma once

#include <vector>

#include "models/layer_cost.h"
#include "models/step_cost.h"
#include "sim/pipeline/problem.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// How the choice's passes run. Megatron-LM's own schedules run B and W as one pass.
CostSetting cost_setting_of(const Scenario& scenario, const ScheduleChoice& choice);

// Seconds of every stage, message and share of the vocabulary of a problem whose placement and
// shape stand. Sequence splits share a microbatch's seconds evenly. O(stages).
void fill_roofline(const Scenario& scenario, const ScheduleChoice& choice, Problem& problem);

// What closes an iteration on each device: its gradients, their norm unless the optimizer is
// validated afterwards, its optimizer step, its parameters. O(stages).
std::vector<StepCost> closing_costs(const Scenario& scenario, const ScheduleChoice& choice);

// Ranks of one stage stand next to each other and copy to the host alike, at the same time: how
// many of them share a switch. Requires a cluster by name.
int ranks_on_a_switch(const Scenario& scenario);

// The cluster that pipeline positions see (rank_of): each stands for all the GPUs of a device, and
// one of them speaks for all, as they do the same at once. A node has as many positions as devices
// (at least one), and a card for each where GPUs have one each.
Cluster cluster_of_positions(const Scenario& scenario);

}  // namespace pipesim
