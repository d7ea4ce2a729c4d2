#include "sim/scenario/roofline.h"

#include <algorithm>

#include "models/stage_cost.h"
#include "models/step_cost.h"
#include "models/vocabulary_share.h"
#include "sim/pipeline/schedule.h"
#include "sim/scenario/problem.h"

namespace pipesim {

CostSetting cost_setting_of(const Scenario& scenario, const ScheduleChoice& choice) {
  const Modelled& modelled = *scenario.modelled;
  CostSetting setting{context_of(modelled, choice), modelled.state, scenario.roofline->overlap};
  setting.fused_backward =
      !choice.program && find_schedule(choice.name)->calls == CallGroups::kMegatron;
  return setting;
}

void fill_roofline(const Scenario& scenario, const ScheduleChoice& choice, Problem& problem) {
  const Modelled& modelled = *scenario.modelled;
  const CostSetting setting = cost_setting_of(scenario, choice);
  const Layout layout = layout_of(modelled, choice, scenario.parallel.pipeline);
  fill_stage_seconds(modelled.model, setting, *scenario.hardware, layout, problem.placement,
                     layer_costs(modelled.model, setting, *scenario.hardware), problem.stages);
  if (is_sharded(problem.vocabulary)) {
    problem.vocabulary_costs.assign(
        static_cast<size_t>(problem.shape.devices),
        share_cost(modelled.model, problem.vocabulary, setting, *scenario.hardware));
    problem.barriers =
        barrier_seconds(modelled.model, problem.vocabulary, setting, *scenario.hardware);
  }
  const double splits = problem.shape.splits;
  for (StageCost& stage : problem.stages) {
    for (Seconds* seconds :
         {&stage.forward, &stage.backward_input, &stage.backward_weight, &stage.transfer}) {
      *seconds = *seconds / splits;
    }
    if (stage.overlapped) *stage.overlapped = *stage.overlapped / splits;
    if (stage.recompute) *stage.recompute = *stage.recompute / splits;
  }
}

Seconds closing_seconds(const Scenario& scenario, const ScheduleChoice& choice) {
  const Modelled& modelled = *scenario.modelled;
  const CostSetting setting = cost_setting_of(scenario, choice);
  const int devices = scenario.parallel.pipeline;
  const Layout layout = layout_of(modelled, choice, devices);
  const Placement placement = placement_of(choice, devices);
  const LayerCosts costs = layer_costs(modelled.model, setting, *scenario.hardware);
  Seconds longest;
  for (int device = 0; device < devices; ++device) {
    const StepCost step =
        step_cost(modelled.model, setting, *scenario.hardware, layout, placement, costs, device);
    const bool norm = scenario.sync != OptimizerSync::kPostValidation;
    longest = std::max(longest, step.total() - (norm ? Seconds(0) : step.norm));
  }
  return longest;
}

}  // namespace pipesim
