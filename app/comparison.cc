#include "app/comparison.h"

#include <fmt/format.h>
#include <utility>

#include "app/progress.h"
#include "app/refusals.h"
#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/prepare/prepare.h"

namespace pipesim {

std::vector<RefusedSchedule> each_feasible(Scenario scenario,
                                           const std::function<void(const Case&)>& work) {
  const std::vector<Prepared> all =
      prepare_all(std::make_shared<const Scenario>(std::move(scenario)));
  ProgressLine progress;
  std::vector<RefusedSchedule> refused;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all.size() > 1) {
      progress.show(fmt::format("[{}/{}] {}", i + 1, all.size(), all[i].label));
    }
    try {
      work(all[i].get());
    } catch (const InfeasibleError& error) {
      if (all.size() == 1) throw;
      refused.push_back({all[i].choice.name, all[i].label, error.what()});
    }
  }
  progress.clear();
  if (refused.size() == all.size()) refuse_all(refused);
  return refused;
}

Comparison compare(Scenario scenario, Detail detail) {
  (void)make_engine(scenario, 1);  // says once, not of each schedule, that this build lacks it
  Comparison comparison;
  comparison.refused = each_feasible(std::move(scenario), [&](const Case& made) {
    comparison.answers.push_back(answer(made, nullptr, detail));
  });
  return comparison;
}

std::vector<std::string> names_of(std::span<const Answer> answers) {
  std::vector<std::string> names;
  for (const Answer& answer : answers) names.push_back(answer.made.choice.name);
  return names;
}

}  // namespace pipesim
