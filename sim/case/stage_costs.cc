#include "sim/case/stage_costs.h"

#include "sim/case/given_costs.h"
#include "sim/case/host_links.h"
#include "sim/case/roofline.h"

namespace pipesim {

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
  add_given_costs(made);
  add_bytes(made);
  if (scenario.roofline) add_roofline(made);
  add_host_links(made);
}

}  // namespace pipesim
