// Zero Bubble's automatic schedule (Qi et al., arXiv 2401.10241, section 3.1): optimal where the
// optimum is known, within every limit, and not where the public code fails. Its orders are
// compared with the public ones in automatic_test.cc.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "tests/golden/automatic.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim::zb_test {
namespace {

constexpr double kSame = 1 + 1e-9;  // sums round

Program plan(std::string_view name, const Problem& problem) {
  const Schedule& schedule = *find_schedule(name);
  EXPECT_FALSE(schedule.refusal(problem).has_value());
  return schedule.plan(problem);
}

TEST(ZeroBubbleAutomatic, IsOptimalWhereTheOptimumIsKnown) {
  const auto data = golden::read_json(golden::data_folder("automatic") / "zb_heuristic.json");
  ASSERT_FALSE(data.at("optimum").empty());
  for (const auto& instance : data.at("optimum")) {
    SCOPED_TRACE(instance.at("id"));
    const Problem problem = golden::read_problem(instance, *find_schedule("zb"));
    const Evaluation ours = evaluate(plan("zb", problem), problem);
    EXPECT_EQ(ours.cost.value(), instance.at("cost").get<double>());
    EXPECT_LE(ours.peak_activation(), *problem.activation_limit);
  }
}

// Any stages, boundaries, bytes and limits: evaluate throws where a program deadlocks.
TEST(ZeroBubbleAutomatic, KeepsEveryLimitThatOneMicrobatchKeeps) {
  testing::Random random(5);
  for (int round = 0; round < testing::rounds(2000); ++round) {
    const Shape shape{random.integer(1, 9), 1, random.integer(1, 30), 1};
    Problem problem =
        testing::random_problem(random, shape, Placement::looped(shape.devices, 1), random.coin());
    const Bytes one = problem.device_activation();
    problem.activation_limit = random.real(1, 2.5 * shape.devices) * one;
    SCOPED_TRACE(fmt::format("round {}: p {} m {}", round, shape.devices, shape.microbatches));
    EXPECT_LE(evaluate(plan("zb", problem), problem).peak_activation(), *problem.activation_limit);
    EXPECT_LE(evaluate(plan("zb-1p", problem), problem).peak_activation(), shape.devices * one);
    EXPECT_LE(evaluate(plan("zb-2p", problem), problem).peak_activation(), 2 * shape.devices * one);
  }
}

// Stages like transformers whose W keeps the inputs and gradients of every matmul. zb-1p and zb-2p
// may hold p and 2p microbatches and the bytes that one B acquires.
TEST(ZeroBubbleAutomatic, KeepsEveryLimitWhereWNeedsMoreThanFAcquired) {
  testing::Random random(6);
  const auto peak = [](const char* name, const Problem& problem) {
    const Problem planning = for_planning(problem, *find_schedule(name));
    return evaluate(plan(name, planning), problem).peak_activation();
  };
  for (int round = 0; round < testing::rounds(500); ++round) {
    const Shape shape{random.integer(1, 9), 1, random.integer(1, 30), 1};
    Problem problem =
        testing::random_problem(random, shape, Placement::looped(shape.devices, 1), random.coin());
    Bytes within_1p, within_2p;
    for (int d = 0; d < shape.devices; ++d) {
      StageCost& cost = problem.stages[d];
      cost.weight_stash = random.real(0, 3) * cost.activation;
      const Bytes growth = std::max(Bytes(0), cost.weight_stash - cost.activation);
      within_1p = std::max(within_1p, shape.devices * cost.activation + growth);
      within_2p = std::max(within_2p, 2 * shape.devices * cost.activation + growth);
    }
    const Bytes least = for_planning(problem).device_activation();
    problem.activation_limit = random.real(1, 2.5 * shape.devices) * least;
    SCOPED_TRACE(fmt::format("round {}: p {} m {}", round, shape.devices, shape.microbatches));
    EXPECT_LE(peak("zb", problem), *problem.activation_limit);
    EXPECT_LE(peak("zb-1p", problem), kSame * within_1p);
    EXPECT_LE(peak("zb-2p", problem), kSame * within_2p);
  }
}

TEST(ZeroBubbleAutomatic, RefusesALimitBelowWhatWNeedsOfOneMicrobatch) {
  Problem problem = testing::make_problem({4, 1, 8, 1});
  problem.stages[2].weight_stash = 3 * problem.stages[2].activation;
  problem.activation_limit = 2.9 * problem.stages[2].activation;
  const Schedule& zb = *find_schedule("zb");
  EXPECT_TRUE(zb.refusal(for_planning(problem, zb)));
  problem.activation_limit = 3 * problem.stages[2].activation;
  EXPECT_FALSE(zb.refusal(for_planning(problem, zb)));
}

TEST(ZeroBubbleAutomatic, FitsPMicrobatchesOfABrokenNumberOfBytesIntoPTimesThat) {
  Problem problem = testing::make_problem({7, 1, 21, 1}, {10, 12, 8, 0});
  for (StageCost& cost : problem.stages) cost.activation = cost.weight_stash = 3.7 * kGiB;
  for (const DeviceEvaluation& device : evaluate(plan("zb-1p", problem), problem).devices) {
    EXPECT_EQ(device.peak_in_flight, 7);
  }
}

TEST(ZeroBubbleAutomatic, RefusesALimitBelowOneMicrobatchAndSaysTheLeast) {
  Problem problem = testing::make_problem({4, 1, 8, 1});
  problem.stages[2].activation = problem.stages[2].weight_stash = 3 * kGiB;
  problem.activation_limit = 2.5 * kGiB;
  const auto refusal = find_schedule("zb")->refusal(problem);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_NE(refusal->reason.find("at least 3.00 GiB"), std::string::npos) << refusal->reason;
  EXPECT_NE(refusal->reason.find("2.50 GiB"), std::string::npos) << refusal->reason;
  EXPECT_EQ(refusal->nearest, problem.shape);
  problem.activation_limit = 3 * kGiB;
  EXPECT_FALSE(find_schedule("zb")->refusal(problem).has_value());
}

// The public code lets device 1 warm up with every microbatch where device 0 does not, and stops at
// an assertion.
TEST(ZeroBubbleAutomatic, DoesNotRunAForwardThatTheDeviceBeforeHasNotRun) {
  Problem problem = testing::make_problem({3, 1, 2, 1});
  const double seconds[3][3] = {{6, 2, 1}, {1, 1, 6}, {1, 1, 6}};
  for (size_t device = 0; device < 3; ++device) {
    problem.stages[device].forward = Seconds(seconds[device][0]);
    problem.stages[device].backward_input = Seconds(seconds[device][1]);
    problem.stages[device].backward_weight = Seconds(seconds[device][2]);
  }
  EXPECT_EQ(evaluate(plan("zb-2p", problem), problem).cost, Seconds(24));
  EXPECT_EQ(evaluate(find_schedule("best", "linear")->plan(problem), problem).cost, Seconds(22));
}

TEST(ZeroBubbleAutomatic, DoesWhatItClaimsUnderEveryLimit) {
  const Schedule& zb = *find_schedule("zb");
  int exact = 0;
  for (const testing::Times& times : {testing::Times{1, 1, 1, 0}, {10, 12, 8, 0}, {4, 10, 8, 0}}) {
    for (int p = 1; p <= 8; ++p) {
      for (int limit = 1; limit <= 3 * p; ++limit) {
        Problem problem = testing::make_problem({p, 1, 3 * p, 1}, times);
        problem.activation_limit = Bytes(limit);
        if (!zb.claims.bubble.holds(problem)) continue;
        ++exact;
        const Evaluation result = evaluate(zb.plan(problem), problem);
        SCOPED_TRACE(fmt::format("p {} limit {} F {}", p, limit, times.forward));
        EXPECT_EQ(result.cost - result.work, zb.claims.bubble.bubble(problem));
        EXPECT_EQ(result.devices[0].peak_in_flight, zb.claims.peak.in_flight(problem, 0));
      }
    }
  }
  EXPECT_GT(exact, 150);
}

}  // namespace
}  // namespace pipesim::zb_test
