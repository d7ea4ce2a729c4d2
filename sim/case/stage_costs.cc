#include "sim/case/stage_costs.h"

#include "models/step_cost.h"
#include "sim/case/given_costs.h"
#include "sim/case/host_links.h"
#include "sim/case/roofline.h"
#include "sim/planning/schedule.h"

namespace pipesim {
void find_layer_costs(Outline& outline) {
  const Scenario& scenario = *outline.scenario;
  outline.costs = std::make_shared<const LayerCosts>(
      layer_costs(scenario.modelled->model, *outline.setting, *scenario.hardware));
}

Bytes older_weights(const Outline& outline, int device, std::span<const StageLayers> stages) {
  if (outline.choice.program || !schedule_of(outline.choice).versions) return {};
  const double weight = outline.context->fp8_parameters ? 1 : weight_bytes(*outline.context);
  const WeightVersions& versions = *schedule_of(outline.choice).versions;
  const HeldParameters held =
      held_parameters(outline.scenario->modelled->model, *outline.context, stages);
  const int older = versions.kept(outline.placement.devices(), device) - 1;
  return Bytes(older * weight * (held.dense + held.expert));
}

void add_stage_costs(Case& made) {
  const Scenario& scenario = *made.scenario;
  made.problem.stages.assign(made.placement.virtual_stages(), StageCost{});
  made.problem.vocabulary_costs.clear();
  made.problem.blocks.clear();
  made.closing.clear();
  if (scenario.modelled) {
    made.memory = estimate_memory(scenario.modelled->model, *made.context, *made.layout,
                                  made.placement, scenario.modelled->state);
  }
  if (made.memory) {
    for (int device = 0; device < made.placement.devices(); ++device) {
      made.memory->devices[device].weights +=
          older_weights(made, device, stages_of(*made.layout, made.placement, device));
    }
  }
  add_given_costs(made);
  add_bytes(made);
  if (scenario.roofline) add_roofline(made);
  add_host_links(made);
}

}  // namespace pipesim
