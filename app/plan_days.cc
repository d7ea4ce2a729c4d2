#include "app/plan_days.h"

#include "sim/prepare/advice.h"
#include "sim/prepare/prepare.h"
#include "sim/read/reliability.h"
#include "sim/read/scenario.h"

namespace pipesim {
namespace {

constexpr int kRuns = 50;

}  // namespace

std::optional<double> goodput_of_first(const ClusterPlan& plan, double tokens,
                                       const Reliability& reliability, double max_steps) {
  if (plan.result.best.empty()) return std::nullopt;
  const std::string first = plan_scenario(plan, plan.result.best.front());
  try {
    const Answer made = answer(prepare_first(read_scenario(YamlSource("the first row", first))));
    return goodput_of(made.made, made.result, reliability,
                      {.tokens = tokens, .runs = kRuns, .max_steps = max_steps})
        .goodput;
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

std::optional<double> days_with_failures(const ClusterPlan& plan, double tokens) {
  const auto goodput = goodput_of_first(plan, tokens, usual_reliability());
  if (!goodput) return std::nullopt;
  return budget_of(plan.question, plan.result.best.front(), tokens).days / *goodput;
}

}  // namespace pipesim
