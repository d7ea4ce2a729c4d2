// V-Half, V-Min and 1F1B-V on random shapes and stages.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/execution/evaluate.h"
#include "sim/planning/device_bound.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::v_half_test {
namespace {

constexpr const char* kNames[] = {"v-half", "v-min", "1f1b-v"};

// The most that the claim lets any device hold.
int claimed_by_any(const Schedule& schedule, const Problem& problem) {
  int most = 0;
  for (int d = 0; d < problem.shape.devices; ++d) {
    most = std::max(most, schedule.claims.peak.in_flight(problem, d));
  }
  return most;
}

// evaluate throws where a program deadlocks, Program where a pass is missing or double.
TEST(VeePatterns, RunWhateverTheStagesCost) {
  testing::Random random(11);
  for (int round = 0; round < 1500; ++round) {
    const Shape shape{random.integer(1, 12), 2, random.integer(1, 40), 1};
    const Problem problem =
        testing::random_problem(random, shape, Placement::vee(shape.devices), random.coin());
    SCOPED_TRACE(fmt::format("round {}: p {} m {}", round, shape.devices, shape.microbatches));
    for (const char* name : kNames) {
      SCOPED_TRACE(name);
      const Schedule& schedule = *find_schedule(name);
      ASSERT_FALSE(schedule.refusal(problem).has_value());
      Evaluation result;
      ASSERT_NO_THROW(result = evaluate(schedule.plan(problem), problem));
      const int most = claimed_by_any(schedule, problem);
      for (const DeviceEvaluation& device : result.devices) {
        EXPECT_LE(device.peak_in_flight, most);
        EXPECT_LE(device.peak_in_flight, 2 * shape.microbatches);
      }
    }
  }
}

TEST(VeePatterns, HoldNoMoreThanIsClaimedAtEqualTimes) {
  for (const char* name : kNames) {
    const Schedule& schedule = *find_schedule(name);
    int claimed = 0;
    for (int p = 1; p <= 12; ++p) {
      for (int m = 1; m <= 40; ++m) {
        SCOPED_TRACE(fmt::format("{} p {} m {}", name, p, m));
        const Problem problem = testing::make_problem({p, 2, m, 1}, Placement::vee(p));
        const Evaluation result = evaluate(schedule.plan(problem), problem);
        const bool holds = schedule.claims.peak.holds(problem);
        claimed += holds ? 1 : 0;
        const int most = claimed_by_any(schedule, problem);
        for (int d = 0; d < p; ++d) {
          const int held = result.devices[d].peak_in_flight;
          EXPECT_LE(held, holds ? schedule.claims.peak.in_flight(problem, d) : most)
              << "device " << d;
        }
      }
    }
    EXPECT_GT(claimed, 12 * 25) << name;
  }
}

// v-search plans none of them where the bound says that it cannot win.
TEST(VeePatterns, CostNoLessThanTheirBoundBeforeTheyArePlanned) {
  testing::Random random(12);
  int near = 0;
  for (int round = 0; round < 300; ++round) {
    const Shape shape{random.integer(2, 12), 2, random.integer(1, 40), 1};
    const Problem problem = for_planning(
        testing::random_problem(random, shape, Placement::vee(shape.devices), random.coin()));
    for (const char* name : kNames) {
      const Schedule& schedule = *find_schedule(name);
      const double bound = bound_of_claimed_peak(schedule, problem).time;
      const double cost = evaluate(schedule.plan(problem), problem).cost.value();
      EXPECT_LE(bound, (1 + 1e-9) * cost)
          << name << " p " << shape.devices << " m " << shape.microbatches;
      near += bound > 0.8 * cost ? 1 : 0;
    }
  }
  EXPECT_GT(near, 0);
}

TEST(VeePatterns, HaveThePublicGeneratorsBubblesWithoutASteadyPart) {
  const struct {
    const char* name;
    int p, m, passes;
  } kCases[] = {{"v-half", 7, 7, 24},
                {"v-half", 8, 5, 23},
                {"v-half", 5, 1, 16},
                {"v-min", 9, 4, 31},
                {"v-min", 3, 3, 8}};
  for (const auto& [name, p, m, passes] : kCases) {
    SCOPED_TRACE(fmt::format("{} p {} m {}", name, p, m));
    const Problem problem = testing::make_problem({p, 2, m, 1}, Placement::vee(p));
    const Evaluation result = evaluate(find_schedule(name)->plan(problem), problem);
    EXPECT_EQ(result.cost - result.work, Seconds(passes));
  }
}

}  // namespace
}  // namespace pipesim::v_half_test
