#include "sim/scenario/coupling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <vector>

#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

std::vector<std::string> asynchronous_schedules() {
  std::vector<std::string> names;
  for (const Schedule* schedule : schedules()) {
    if (schedule->versions) names.push_back(schedule->name);
  }
  return names;
}

}  // namespace

std::optional<CallGroups> calls_of(Transfers transfers, const Schedule& schedule) {
  return transfers == Transfers::kBlocking ? schedule.calls : std::nullopt;
}

Coupling coupling_of(const Scenario& scenario, const ScheduleChoice& choice) {
  const Schedule* schedule = choice.program ? nullptr : &schedule_of(choice);
  Coupling coupling{.sync = scenario.sync};
  if (schedule != nullptr) {
    coupling.blocking = calls_of(scenario.transfers, *schedule);
  } else if (scenario.transfers == Transfers::kBlocking) {
    coupling.blocking = CallGroups::kEveryPass;
  }
  if (schedule != nullptr && schedule->versions) {
    const auto units = static_cast<std::uint32_t>(scenario.batch.microbatches * splits_of(choice));
    coupling.sync = OptimizerSync::kAsynchronous;
    coupling.stream = {units, schedule->versions->every_microbatch ? 1 : units};
  } else if (scenario.sync == OptimizerSync::kAsynchronous) {
    throw InputError(choice.where,
                     fmt::format("optimizer.sync is asynchronous, which {} is not: it keeps one "
                                 "version of weights; {} keep more",
                                 choice.name, fmt::join(asynchronous_schedules(), " and ")));
  }
  return coupling;
}

}  // namespace pipesim
