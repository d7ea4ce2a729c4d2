// Optima of tiny problems, proven by an integer program (tests/exact): the stored orders are what
// they say, and no schedule of ours is better.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "tests/exact/instance.h"

namespace pipesim::exact_test {
namespace {

using nlohmann::json;

void expect_within_limit(const Evaluation& result, const Problem& problem) {
  for (const DeviceEvaluation& device : result.devices) {
    EXPECT_LE(device.peak_activation, *problem.activation_limit);
  }
}

TEST(ExactOptimum, HasAnOrderThatKeepsTheLimitAndCostsIt) {
  int linear = 0;
  int vee = 0;
  for (const json& data : exact::proven_optima()) {
    SCOPED_TRACE(data.at("id"));
    const auto [_, problem] = exact::read_instance(data);
    const Evaluation result = evaluate(exact::read_order(data.at("order"), problem), problem);
    EXPECT_EQ(result.cost.value(), data.at("cost").get<double>());
    expect_within_limit(result, problem);
    (problem.shape.chunks == 1 ? linear : vee) += 1;
  }
  EXPECT_GE(linear, 40);
  EXPECT_GE(vee, 15);
}

// Also for schedules that are still to come: whatever takes the problem as it is and keeps its
// limit.
TEST(ExactOptimum, IsNotBeatenByASchedule) {
  int planned = 0;
  for (const json& data : exact::proven_optima()) {
    const auto [id, problem] = exact::read_instance(data);
    for (const Schedule* schedule : schedules()) {
      SCOPED_TRACE(id + " " + schedule->name);
      const Shape& shape = problem.shape;
      if (shape.chunks < schedule->min_chunks || shape.chunks > schedule->max_chunks) continue;
      if (schedule->place(shape.devices, shape.chunks) != problem.placement) continue;
      if (!schedule->memory_limit || schedule->refusal(problem)) continue;
      const Evaluation result = evaluate(schedule->plan(problem), problem);
      EXPECT_GE(result.cost.value(), data.at("cost").get<double>());
      expect_within_limit(result, problem);
      ++planned;
    }
  }
  EXPECT_GE(planned, 40);
}

TEST(ExactOptimum, IsReachedOrMissedByBest) {
  int reached = 0;
  int all = 0;
  double worst = 1;
  for (const json& data : exact::proven_optima()) {
    const auto [id, problem] = exact::read_instance(data);
    SCOPED_TRACE(id);
    const bool linear = problem.shape.chunks == 1;
    const Schedule& best = *find_schedule("best", linear ? "linear" : "vee");
    if (best.place(problem.shape.devices, problem.shape.chunks) != problem.placement) continue;
    const double ours = evaluate(best.plan(problem), problem).cost.value();
    const double optimum = data.at("cost").get<double>();
    EXPECT_GE(ours, optimum);
    reached += ours == optimum ? 1 : 0;
    worst = std::max(worst, ours / optimum);
    ++all;
  }
  fmt::print("best reaches {} of {} optima; at worst {:.1f} % above\n", reached, all,
             100 * (worst - 1));
}

}  // namespace
}  // namespace pipesim::exact_test
