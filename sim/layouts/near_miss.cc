#include "sim/layouts/near_miss.h"

#include <memory>
#include <tuple>
#include <utility>

#include "sim/case/make_case.h"
#include "sim/prepare/advice.h"

namespace pipesim {

NearMiss miss_of(const PlanQuestion& question, Planned planned) {
  const Hardware& hardware = *question.base.hardware;
  NearMiss miss{std::move(planned), {}};
  miss.host = miss.planned.fits != MemoryFit::kNo;
  miss.over = miss.host
                  ? (miss.planned.on_host - hardware.host.memory) / hardware.cluster.gpus_per_node
                  : miss.planned.peak - question.limit();
  return miss;
}

bool is_nearer(const NearMiss& a, const NearMiss& b) {
  const auto key = [](const NearMiss& each) {
    return std::tuple(each.over, each.planned.iteration, each.planned.id);
  };
  return key(a) < key(b);
}

std::optional<MemoryChange> change_that_fits(const PlanQuestion& question, const Planned& planned) {
  auto scenario =
      std::make_shared<Scenario>(scenario_of(question, planned.point, planned.balanced()));
  // Other sizes may need other splits.
  if (planned.layout) scenario->modelled->split.way = LayerSplit::Way::kBalanced;
  const ScheduleChoice& choice = scenario->schedules.front();
  return change_that_fits(outline_of(scenario, choice));
}

}  // namespace pipesim
