#include "library/feasible.h"

#include <utility>

#include "app/refusals.h"
#include "sim/core/error.h"
#include "sim/prepare/prepare.h"

namespace pipesim {
std::vector<RefusedSchedule> each_feasible(const std::shared_ptr<const Scenario>& scenario,
                                           const std::atomic<bool>& stop,
                                           const std::function<void(Case)>& work) {
  std::vector<RefusedSchedule> refused;
  std::vector<Prepared> all = prepare_all(scenario);
  for (Prepared& each : all) {
    if (stop) break;
    try {
      if (each.error) std::rethrow_exception(each.error);
      work(std::move(*each.made));
    } catch (const InfeasibleError& error) {
      if (all.size() == 1) throw;
      refused.push_back({each.choice.name, each.label, error.what()});
    }
  }
  if (refused.size() == all.size()) refuse_all(refused);
  return refused;
}

}  // namespace pipesim
