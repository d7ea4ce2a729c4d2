#include "sim/layouts/first_bounds.h"

#include "sim/case/make_case.h"
#include "sim/layouts/ranking.h"
#include "sim/planning/schedule.h"

namespace pipesim {

FirstBounds::Known FirstBounds::known_of(const PlanPoint& point) const {
  auto scenario = std::make_shared<const Scenario>(scenario_of(question_, point));
  const ScheduleChoice& choice = scenario->schedules.front();
  const Outline asked = outline_of(scenario, choice);
  return {work_bound(asked), least_memory(asked), asked.costs};
}

FirstBound FirstBounds::of(PlanPoint point) {
  if (last_ && !same_sizes(point, *last_)) known_.clear();
  last_ = point;
  // One layer or more: the bound counts none of them.
  if (takes_fewest_layers(question_, point)) point.recompute_layers = 1;
  const auto& calls = point.schedule->calls;
  const Kind kind{calls == CallGroups::kMegatron,
                  calls == CallGroups::kDualPipe,
                  point.expert_overlap,
                  point.recompute_layers > 0,
                  point.vocabulary,
                  point.recompute,
                  to_text(point.modules, "+"),
                  point.sharding};
  auto found = known_.find(kind);
  if (found == known_.end()) found = known_.emplace(kind, known_of(point)).first;
  const Known& known = found->second;
  const bool stays = !offloads(point) && !point.schedule->describes_recompute;
  const Bytes activations = stays ? known.memory.activations : Bytes(0);
  return {known.iteration, known.memory.beside + activations, known.costs};
}

}  // namespace pipesim
