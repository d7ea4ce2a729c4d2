#include "sim/case/stage_costs.h"

#include "models/step_cost.h"
#include "sim/case/given_costs.h"
#include "sim/case/host_links.h"
#include "sim/case/roofline.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

// Of what passes read: gradients and the optimizer's state are there once.
void add_weight_versions(Case& made) {
  const double weight_bytes = made.context->fp8_parameters ? 1 : 2;
  const WeightVersions& versions = *schedule_of(made.choice).versions;
  const int devices = made.placement.devices();
  for (int device = 0; device < devices; ++device) {
    const HeldParameters held = held_parameters(made.scenario->modelled->model, *made.context,
                                                *made.layout, made.placement, device);
    const int more = versions.kept(devices, device) - 1;
    made.memory->devices[device].weights += Bytes(more * weight_bytes * (held.dense + held.expert));
  }
}

}  // namespace

void find_layer_costs(Outline& outline) {
  const Scenario& scenario = *outline.scenario;
  outline.costs = std::make_shared<const LayerCosts>(
      layer_costs(scenario.modelled->model, *outline.setting, *scenario.hardware));
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
  if (made.memory && made.sync == OptimizerSync::kAsynchronous) add_weight_versions(made);
  add_given_costs(made);
  add_bytes(made);
  if (scenario.roofline) add_roofline(made);
  add_host_links(made);
}

}  // namespace pipesim
