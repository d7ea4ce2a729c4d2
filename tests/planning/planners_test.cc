#include "sim/planning/planners.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <vector>

#include "sim/execution/evaluate.h"
#include "sim/planning/run_within.h"
#include "sim/planning/windows.h"
#include "tests/sanitized.h"

namespace pipesim::planners_test {
namespace {

Problem vee_problem(int devices, int microbatches, bool alike) {
  Problem problem;
  problem.shape = {devices, 2, microbatches, 1};
  problem.placement = Placement::vee(devices);
  for (int vs = 0; vs < 2 * devices; ++vs) {
    StageCost cost;
    const double more = alike ? 0 : 0.1 * (vs % 3);
    cost.forward = Seconds(1.1 + more);
    cost.backward_input = Seconds(1.3 + more);
    cost.backward_weight = Seconds(0.7);
    cost.transfer = Seconds(vs == devices - 1 ? 0 : 0.05);
    cost.activation = Bytes(alike ? 10 : 10 + vs % 2);
    cost.weight_stash = Bytes(4);
    problem.stages.push_back(cost);
  }
  return problem;
}

std::vector<std::vector<Pass>> passes_of(const Program& program) {
  std::vector<std::vector<Pass>> all;
  for (int d = 0; d < program.shape().devices; ++d) {
    const auto passes = program.passes(d);
    all.emplace_back(passes.begin(), passes.end());
  }
  return all;
}

const std::vector<Problem>& problems() {
  static const std::vector<Problem> all{vee_problem(4, 16, true), vee_problem(6, 40, false),
                                        vee_problem(6, 6, true),  vee_problem(8, 5, false),
                                        vee_problem(4, 30, true), vee_problem(8, 80, true)};
  return all;
}

// Up, down, and where no block fits.
constexpr std::array kShares{1.0, 0.3, 2.0, 0.13, 0.55, 1.5, 0.8};

TEST(Planners, PlanAsTheScheduleWithEachLimitByItself) {
  for (const Problem& problem : testing::some(problems())) {
    Planners planners(problem);
    for (const double share : kShares) {
      const Bytes one = problem.device_activation();
      const Bytes limit = std::max(one, share * problem.shape.devices * one);
      Problem limited = problem;
      limited.activation_limit = limit;
      for (const char* name : {"v-search", "best"}) {
        const Schedule& schedule = *find_schedule(name);
        if (schedule.refusal(limited)) continue;
        const auto shared = planners.plan(schedule, limit);
        EXPECT_EQ(passes_of(*shared), passes_of(schedule.plan(limited)))
            << name << " " << problem.shape.devices << " x " << problem.shape.microbatches
            << " within " << share;
        EXPECT_EQ(planners.plan(schedule, limit), shared) << "made once";
        EXPECT_LE(evaluate(*shared, limited).peak_activation().value(),
                  (1 + 1e-12) * limit.value());
      }
    }
  }
}

TEST(RunWithin, GivesUpOnlyWhatCostsMoreThanAllowed) {
  for (const Problem& problem : problems()) {
    const Bytes limit = 0.6 * problem.shape.devices * problem.device_activation();
    Problem limited = problem;
    limited.activation_limit = limit;
    const PassLists order = passes_of(find_schedule("best")->plan(limited));
    for (const bool hold_back : {false, true}) {
      const WithinRules rules{.hold_back = hold_back};
      const WithinResult whole = run_within(problem, limit, order, rules);
      const WithinResult same = run_within(problem, limit, order, rules, whole.time);
      EXPECT_EQ(same.lists, whole.lists);
      EXPECT_EQ(same.time, whole.time);
      const WithinResult none = run_within(problem, limit, order, rules, 0.99 * whole.time);
      EXPECT_TRUE(none.lists.empty());
      EXPECT_GT(none.time, whole.time);
    }
  }
}

TEST(RunWithin, SaysWithinWhichLimitsItIsTheSame) {
  for (const Problem& problem : problems()) {
    const Bytes limit = 0.6 * problem.shape.devices * problem.device_activation();
    Problem limited = problem;
    limited.activation_limit = limit;
    const PassLists order = passes_of(find_schedule("best")->plan(limited));
    const WithinRules rules{.hold_back = true, .overtake = true};
    const WithinResult whole = run_within(problem, limit, order, rules);
    EXPECT_LE(whole.asked, (1 + 1e-12) * limit);
    EXPECT_GT(whole.refused, limit);
    EXPECT_EQ(run_within(problem, whole.asked, order, rules).lists, whole.lists);
    const Bytes most = std::min((1 - 1e-9) * whole.refused, 9 * limit);
    EXPECT_EQ(run_within(problem, most, order, rules).lists, whole.lists);
  }
}

TEST(RunWithin, DoesTheSameByARuleThatItNeverCameTo) {
  int same = 0, other = 0;
  for (const Problem& problem : problems()) {
    for (const double share : {0.2, 0.4, 1.0}) {
      const Bytes one = problem.device_activation();
      const Bytes limit = std::max(one, share * problem.shape.devices * one);
      const PassLists order = passes_of(find_schedule("v-min")->plan(problem));
      const WithinResult whole = run_within(problem, limit, order, {.hold_back = true});
      const WithinRules others{.hold_back = true, .overtake = true};
      const bool overtakes = run_within(problem, limit, order, others).lists != whole.lists;
      EXPECT_TRUE(whole.met_overtake || !overtakes);
      ++(whole.met_overtake ? other : same);
    }
  }
  EXPECT_GT(same, 0);
  EXPECT_GT(other, 0);
}

// The bound by which best leaves lower limits out.
TEST(Windows, OfTheFirstDeviceBoundWhatIsPlanned) {
  for (const Problem& problem : problems()) {
    for (const double share : kShares) {
      const Bytes one = problem.device_activation();
      Problem limited = problem;
      limited.activation_limit = std::max(one, share * problem.shape.devices * one);
      const Seconds first = bound_of_windows(problem, *limited.activation_limit, 1).seconds;
      const Seconds all = bound_of_windows(problem, *limited.activation_limit).seconds;
      EXPECT_LE(first, all);
      const Program planned = find_schedule("best")->plan(limited);
      EXPECT_LE(all, (1 + 1e-9) * evaluate(planned, problem).cost);
    }
  }
}

}  // namespace
}  // namespace pipesim::planners_test
