#include "app/comparison.h"

#include <fmt/format.h>
#include <iostream>
#include <unistd.h>
#include <utility>

#include "sim/core/error.h"

namespace pipesim {

std::vector<RefusedSchedule> leave_feasible(
    Scenario& scenario, const std::function<void(const ScheduleChoice&)>& work) {
  const size_t all = scenario.schedules.size();
  const bool progress = ::isatty(2) == 1 && all > 1;
  std::vector<ScheduleChoice> left;
  std::vector<RefusedSchedule> refused;
  for (size_t i = 0; i < all; ++i) {
    const ScheduleChoice& choice = scenario.schedules[i];
    if (progress) {
      std::cerr << fmt::format("\r\033[K[{}/{}] {}", i + 1, all, choice.name) << std::flush;
    }
    try {
      work(choice);
      left.push_back(choice);
    } catch (const InfeasibleError& error) {
      if (all == 1) throw;
      refused.push_back({label_of(choice), error.what()});
    }
  }
  if (progress) std::cerr << "\r\033[K" << std::flush;
  if (left.empty()) {
    const std::string why = refusals(refused);
    throw InfeasibleError("no schedule can be met\n" + why.substr(0, why.size() - 1));
  }
  scenario.schedules = std::move(left);
  return refused;
}

Comparison compare(Scenario scenario) {
  Comparison comparison{std::move(scenario), {}, {}};
  comparison.refused = leave_feasible(comparison.scenario, [&](const ScheduleChoice& choice) {
    comparison.simulations.push_back(simulate(comparison.scenario, choice));
  });
  return comparison;
}

std::string refusals(std::span<const RefusedSchedule> refused) {
  std::string text;
  for (const auto& [schedule, reason] : refused) {
    // The reason often begins with the schedule's name.
    const bool named = reason.starts_with(schedule + ": ");
    text += fmt::format("{}: refused: {}\n", schedule,
                        named ? reason.substr(schedule.size() + 2) : reason);
  }
  return text;
}

}  // namespace pipesim
