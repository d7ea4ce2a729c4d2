#include "app/plan_days.h"

#include "sim/goodput/goodput.h"
#include "sim/prepare/advice.h"
#include "sim/prepare/prepare.h"
#include "sim/read/reliability.h"
#include "sim/read/scenario.h"

namespace pipesim {
namespace {

constexpr int kRuns = 50;

}  // namespace

std::optional<double> days_with_failures(const ClusterPlan& plan, double tokens) {
  if (plan.result.best.empty()) return std::nullopt;
  const Planned& first = plan.result.best.front();
  try {
    const Answer made = answer(
        prepare_first(read_scenario(YamlSource("the first row", plan_scenario(plan, first)))));
    const Goodput goodput =
        goodput_of(made.made, made.result, usual_reliability(), {.tokens = tokens, .runs = kRuns});
    return budget_of(plan.question, first, tokens).days / goodput.goodput;
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

}  // namespace pipesim
