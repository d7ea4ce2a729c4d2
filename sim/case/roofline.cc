#include "sim/case/roofline.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "models/alike.h"
#include "models/module_offload.h"
#include "models/stage_cost.h"
#include "models/stage_pair.h"
#include "models/step_cost.h"
#include "models/vocabulary_share.h"
#include "sim/case/sharding.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

void add_blocks(Case& made, const LayerCosts& costs) {
  const Scenario& scenario = *made.scenario;
  const StagePairs pairs(scenario.modelled->model, *made.setting, *scenario.hardware, costs);
  const Placement& place = made.placement;
  const auto& stages = made.layout->stages;
  const std::vector<int> alike = first_alike(scenario.modelled->model, *made.layout);
  std::map<std::pair<int, int>, Seconds> known;
  const auto seconds = [&](int forward, int backward) {
    const auto [found, is_new] = known.try_emplace({alike[forward], alike[backward]});
    if (is_new) found->second = pairs.seconds(stages[forward], stages[backward]);
    return found->second;
  };
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    for (int chunk = 0; chunk < place.chunks(); ++chunk) {
      const int other = place.beside(vs, chunk);
      made.problem.blocks.push_back(seconds(place.model_stage(vs), place.model_stage(other)));
    }
  }
}

// Adds waits for activations that modules copy out and back beside the passes.
void wait_for_copies(Case& made) {
  const Placement& place = made.placement;
  const auto copy = [&](int vs) {
    const Bytes bytes = made.memory->stages[place.model_stage(vs)].offloaded;
    return copy_seconds(bytes, *made.scenario->hardware) / made.parts;
  };
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    wait_for_copies(copy(vs), *made.setting, made.problem.stages[vs]);
  }
  for (size_t block = 0; block < made.problem.blocks.size(); ++block) {
    const int vs = static_cast<int>(block) / place.chunks();
    const int other = place.beside(vs, static_cast<int>(block) % place.chunks());
    Seconds& seconds = made.problem.blocks[block];
    seconds = std::max({seconds, copy(vs), copy(other)});
  }
}

}  // namespace

void add_roofline(Case& made) {
  const Scenario& scenario = *made.scenario;
  const Transformer& model = scenario.modelled->model;
  const LayerCosts& costs = *made.costs;
  fill_stage_seconds(model, *made.setting, *scenario.hardware, *made.layout, made.placement, costs,
                     made.problem.stages);
  if (blocks_of(made.choice)) add_blocks(made, costs);
  fill_vocabulary(model, *made.setting, *scenario.hardware, made.problem);
  if (made.setting->state.sharded_gradients) add_sharding(made, costs);
  if (made.context->offloaded.any()) wait_for_copies(made);
  const std::vector<int> alike_devices = first_alike_devices(model, *made.layout, made.placement);
  for (int device = 0; device < made.placement.devices(); ++device) {
    if (alike_devices[device] < device) {
      made.closing.push_back(made.closing[alike_devices[device]]);
      continue;
    }
    made.closing.push_back(step_cost(model, *made.setting, *scenario.hardware, *made.layout,
                                     made.placement, costs, device));
    if (!joins_devices(made.sync)) made.closing.back().terms[ClosingTerm::kNorm] = Seconds(0);
  }
}

}  // namespace pipesim
