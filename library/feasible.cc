#include "library/feasible.h"

#include <fmt/format.h>
#include <string>
#include <utility>

#include "sim/prepare/prepare.h"

namespace pipesim {
namespace {

[[noreturn]] void refuse_all(const std::vector<RefusedSchedule>& refused) {
  std::string text = "no schedule can be met";
  for (const RefusedSchedule& each : refused) {
    text += fmt::format("\n{}: refused: {}", each.label, each.reason);
  }
  throw InfeasibleError(text);
}

}  // namespace

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
