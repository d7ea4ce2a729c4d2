#include "sim/case/roofline.h"

#include <algorithm>

#include "models/stage_cost.h"
#include "models/step_cost.h"
#include "models/vocabulary_share.h"
#include "sim/case/problem.h"
#include "sim/planning/schedule.h"

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
  const Placement& place = problem.placement;
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    StageCost& stage = problem.stages[vs];
    for (Seconds* seconds : {&stage.forward, &stage.backward_input, &stage.backward_weight}) {
      *seconds = *seconds / splits;
    }
    if (const int next = place.downstream(vs); next >= 0 && stage.transfer > Seconds(0)) {
      // Bytes are divided, latency is every message's own.
      const Seconds latency = message_latency(modelled.model, setting, *scenario.hardware,
                                              place.device(vs), place.device(next));
      stage.transfer = latency + (stage.transfer - latency) / splits;
    }
    if (stage.overlapped) *stage.overlapped = *stage.overlapped / splits;
    if (stage.recompute) *stage.recompute = *stage.recompute / splits;
  }
}

std::vector<StepCost> closing_costs(const Scenario& scenario, const ScheduleChoice& choice) {
  const Modelled& modelled = *scenario.modelled;
  const CostSetting setting = cost_setting_of(scenario, choice);
  const int devices = scenario.parallel.pipeline;
  const Layout layout = layout_of(modelled, choice, devices);
  const Placement placement = placement_of(choice, devices);
  const LayerCosts costs = layer_costs(modelled.model, setting, *scenario.hardware);
  std::vector<StepCost> closing;
  for (int device = 0; device < devices; ++device) {
    closing.push_back(
        step_cost(modelled.model, setting, *scenario.hardware, layout, placement, costs, device));
    if (scenario.sync == OptimizerSync::kPostValidation) closing.back().norm = Seconds(0);
  }
  return closing;
}

int ranks_on_a_switch(const Scenario& scenario) {
  const ParallelSizes& sizes = scenario.parallel;
  return std::min({scenario.hardware->host.gpus_per_switch, scenario.cluster->gpus_per_node,
                   sizes.tensor * sizes.context * sizes.data});
}

Cluster cluster_of_positions(const Scenario& scenario) {
  Cluster cluster = *scenario.cluster;
  const ParallelSizes& sizes = scenario.parallel;
  const int gpus = cluster.gpus_per_node;
  const int replica = sizes.tensor * sizes.context;
  // Replicas that are not simulated stand between those that are.
  const int device = replica * sizes.data;
  const int positions =
      device <= gpus ? gpus / device * sizes.pipelines : std::min(sizes.pipelines, gpus / replica);
  cluster.gpus_per_node = std::max(1, positions);
  cluster.nics_per_node = std::max(1, cluster.gpus_per_node * cluster.nics_per_node / gpus);
  return cluster;
}

}  // namespace pipesim
