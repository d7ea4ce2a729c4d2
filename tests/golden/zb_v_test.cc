// ZB-V as published: within its domain and refused outside. Its cost against the authors' public
// code stands with the other automatic schedules' data.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/execution/evaluate.h"
#include "sim/planning/greedy.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim::zb_v_test {
namespace {

const Schedule& zb_v() { return *find_schedule("zb-v"); }

// evaluate throws where a program deadlocks; a Program is complete or does not come about.
Evaluation planned(const Problem& problem) {
  EXPECT_FALSE(zb_v().refusal(problem).has_value());
  return evaluate(zb_v().plan(problem), problem);
}

Evaluation best(const Problem& problem) {
  return evaluate(find_schedule("best", "vee")->plan(problem), problem);
}

Problem random_vee(testing::Random& random, int most_devices, int most_microbatches) {
  const Shape shape{random.integer(1, most_devices), 2, random.integer(1, most_microbatches), 1};
  return testing::random_problem(random, shape, Placement::vee(shape.devices), random.coin());
}

TEST(ZeroBubbleV, KeepsEveryLimitThatItAccepts) {
  testing::Random random(11);
  int accepted = 0;
  for (int round = 0; round < testing::rounds(1000); ++round) {
    Problem problem = random_vee(random, 9, 30);
    const double p = problem.shape.devices;
    problem.activation_limit = random.real(1, 2.5 * p) * problem.device_activation();
    if (zb_v().refusal(problem)) continue;
    ++accepted;
    SCOPED_TRACE(fmt::format("round {}: p {} m {}", round, p, problem.shape.microbatches));
    EXPECT_LE(planned(problem).peak_activation(), *problem.activation_limit);
  }
  EXPECT_GT(accepted, testing::rounds(400));
}

// The least limits with which the public code stops at no assertion, in chunks.
TEST(ZeroBubbleV, RefusesTheLimitsThatThePublicCodeDoesNotTake) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 2 * p + 1; ++m) {
      const int least = m == 1 ? 2 : m < p ? 2 * p - 1 : 2 * p;
      Problem problem = testing::make_problem({p, 2, m, 1}, Placement::vee(p));
      SCOPED_TRACE(fmt::format("p {} m {}", p, m));
      problem.activation_limit = Bytes(least);
      EXPECT_LE(planned(problem).peak_activation(), Bytes(least));
      problem.activation_limit = Bytes(least - 0.5);
      EXPECT_TRUE(zb_v().refusal(problem));
    }
  }
}

// A portfolio once gave V-Half's order there.
TEST(ZeroBubbleV, DoesNotPlanWithin0625OfTheMemoryOf1F1BButBestDoes) {
  Problem problem = testing::make_problem({16, 2, 64, 1}, Placement::vee(16));
  problem.activation_limit = 0.625 * 16 * problem.device_activation();
  const auto refusal = zb_v().refusal(problem);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(
      refusal->reason,
      "zb-v needs a memory_limit of at least 1 times what p microbatches keep, not 0.625: the "
      "paper's rounds do not warm up within less; {name: best, placement: vee} plans within "
      "any limit");
  EXPECT_LE(best(problem).cost, evaluate(find_schedule("v-half")->plan(problem), problem).cost);
}

TEST(ZeroBubbleV, PlansByTheSpanWhateverCounts) {
  testing::Random random(14);
  for (int round = 0; round < 100; ++round) {
    Problem problem = random_vee(random, 8, 20);
    const Seconds span = planned(problem).cost;
    problem.objective = Objective::kMakespan;
    EXPECT_EQ(planned(problem).cost, span);
  }
}

TEST(BestVee, KeepsEveryLimitThatOneMicrobatchKeeps) {
  testing::Random random(11);
  for (int round = 0; round < testing::rounds(1000); ++round) {
    Problem problem = random_vee(random, 9, 30);
    const Bytes one = problem.device_activation();
    const int kind = random.integer(0, 2);
    problem.activation_limit = kind == 0   ? one
                               : kind == 1 ? random.real(1, 3) * one
                                           : random.real(1, 2.5 * problem.shape.devices) * one;
    SCOPED_TRACE(fmt::format("round {}: p {} m {}", round, problem.shape.devices,
                             problem.shape.microbatches));
    EXPECT_LE(best(problem).peak_activation(), *problem.activation_limit);
  }
}

// Chunks that keep nothing, or all until B, passes that take no time, transfers longer than any.
TEST(BestVee, KeepsLimitsAtTheEdges) {
  testing::Random random(12);
  for (int round = 0; round < testing::rounds(700); ++round) {
    Problem problem = random_vee(random, 6, 12);
    for (StageCost& cost : problem.stages) {
      if (random.integer(0, 3) == 0) cost.activation = Bytes(0);
      cost.weight_stash = random.integer(0, 2) * 0.5 * cost.activation;
      if (random.integer(0, 3) == 0) cost.forward = Seconds(0);
      if (random.integer(0, 3) == 0) cost.backward_input = Seconds(0);
      if (random.integer(0, 3) == 0) cost.backward_weight = Seconds(0);
      if (cost.transfer > Seconds(0)) cost.transfer = random.integer(0, 3) * 30.0 * cost.transfer;
    }
    if (problem.device_activation() == Bytes(0)) continue;
    problem.activation_limit =
        random.integer(1, 2 * problem.shape.devices) * problem.device_activation();
    SCOPED_TRACE(fmt::format("round {}: p {} m {}", round, problem.shape.devices,
                             problem.shape.microbatches));
    EXPECT_LE(best(problem).peak_activation(), *problem.activation_limit);
  }
}

// Both planners under all of their rules, which the schedule compares only where they may win.
TEST(GreedyPlanner, KeepsEveryLimitUnderEveryRule) {
  testing::Random random(13);
  for (int round = 0; round < 1500; ++round) {
    const Shape shape{random.integer(1, 8), 2, random.integer(1, 20), 1};
    const Placement place = Placement::vee(shape.devices);
    const Problem problem = testing::random_problem(random, shape, place, random.coin());
    const Bytes limit = random.real(1, 4) * problem.device_activation();
    GreedyPlanner planner(problem);
    planner.set_limit(limit);
    for (const bool b1_before_f1 : {false, true}) {
      for (const double beyond_share : {0.0, 0.5, 3.0}) {
        const double cost = planner.run({b1_before_f1, random.real(0, 1.5), beyond_share}, {}).time;
        const Evaluation result = evaluate({shape, place, planner.lists()}, problem);
        EXPECT_LE(result.peak_activation(), limit);
        EXPECT_LE(result.cost.value(), cost * 1e-12 * (1 + 1e-9));
        EXPECT_EQ(planner.run({b1_before_f1, 0.3, beyond_share}, {cost * 1e-6}), PlanTime{});
      }
    }
  }
}

TEST(BestVee, RefusesALimitBelowOneMicrobatchAndSaysTheLeast) {
  Problem problem = testing::make_problem({4, 2, 8, 1}, Placement::vee(4));
  for (StageCost& cost : problem.stages) cost.activation = cost.weight_stash = kGiB;
  problem.stages[2].activation = problem.stages[2].weight_stash = 2 * kGiB;
  problem.activation_limit = 2.5 * kGiB;
  const auto refusal = find_schedule("best", "vee")->refusal(problem);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_NE(refusal->reason.find("at least 3.00 GiB"), std::string::npos) << refusal->reason;
  EXPECT_NE(refusal->reason.find("2.50 GiB"), std::string::npos) << refusal->reason;
  EXPECT_EQ(refusal->nearest, problem.shape);
  problem.activation_limit = 3 * kGiB;
  EXPECT_LE(best(problem).peak_activation(), 3 * kGiB);
}

TEST(BestVee, NeedsNoBubbleAtAllWithTwiceThatMemory) {
  Problem problem =
      testing::make_problem({8, 2, 32, 1}, Placement::vee(8), {6.763, 6.969, 5.251, 0.755});
  for (StageCost& cost : problem.stages) cost.weight_stash = 0.43 * cost.activation;
  problem.activation_limit = 16 * problem.device_activation();
  EXPECT_NEAR(best(problem).bubble_rate(), 0, 1e-12);
}

// Within the memory of three microbatches, more than two are on their way on average.
TEST(BestVee, LeavesRoomForChunkOneWhereMemoryIsShort) {
  Problem problem = testing::make_problem({10, 2, 16, 1}, Placement::vee(10), {12, 10, 20, 0});
  problem.activation_limit = 3 * problem.device_activation();
  const Evaluation result = best(problem);
  Problem alone = problem;
  alone.activation_limit = problem.device_activation();
  EXPECT_LT(result.cost, 0.5 * best(alone).cost);
}

// Greedy plans keep the limit in steps, the others as it is: from one step down to the next both
// have to be tried with what lies between.
TEST(BestVee, TakesNoLongerWithMoreMemoryBetweenSteps) {
  Problem problem = testing::make_problem({6, 2, 6, 1}, Placement::vee(6),
                                          {4.526e-3, 6.8175e-3, 3.621e-3, 1.657e-3});
  for (StageCost& cost : problem.stages) cost.weight_stash = 1e-5 * cost.activation;
  const auto time_within = [&](double microbatches) {
    problem.activation_limit = microbatches * problem.device_activation();
    return best(problem).cost.value();
  };
  EXPECT_LE(time_within(4.3), time_within(4.095) * (1 + 1e-12));
  EXPECT_LE(time_within(4.14), time_within(4.095) * (1 + 1e-12));
}

// One microbatch at a time: the whole way, over and over, without waiting for any W but its own.
TEST(BestVee, RunsOneMicrobatchAfterTheOtherWhereOnlyOneFits) {
  Problem problem = testing::make_problem({3, 2, 4, 1}, Placement::vee(3), {2, 3, 1, 1});
  problem.activation_limit = problem.device_activation();
  const Evaluation result = best(problem);
  for (const DeviceEvaluation& device : result.devices) EXPECT_EQ(device.peak_in_flight, 2);
}

}  // namespace
}  // namespace pipesim::zb_v_test
