// `best` within a memory limit: never slower than the fixed orders that fit, nor than within a
// lower limit of the ladder (sim/planning/memory_ladder.h). Cost is the longest span of a device.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <initializer_list>

#include "sim/execution/evaluate.h"
#include "sim/planning/device_bound.h"
#include "sim/planning/memory_ladder.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim::memory_limit_test {
namespace {

constexpr double kSame = 1 + 1e-9;

// Stages of unlike or equal times and bytes, with or without transfers, B that frees all or
// nothing.
Problem random_stages(testing::Random& random, const Shape& shape, Placement placement) {
  Problem problem = testing::random_problem(random, shape, std::move(placement), random.coin());
  for (StageCost& cost : problem.stages) cost.recompute.reset();
  if (random.coin()) {
    for (StageCost& cost : problem.stages) cost = problem.stages.front();
  }
  testing::set_transfers(problem, random.coin() ? 0 : random.real(0, random.coin() ? 5 : 80));
  const bool frees_nothing = random.coin();
  for (StageCost& cost : problem.stages) {
    if (frees_nothing) cost.weight_stash = cost.activation;
  }
  return problem;
}

Evaluation run(std::string_view name, const Problem& problem) {
  return evaluate(find_schedule(name)->plan(problem), problem);
}

Evaluation run_best(std::string_view placement, const Problem& problem) {
  return evaluate(find_schedule("best", placement)->plan(problem), problem);
}

// Tries limits from one microbatch to four times p: the ladder's with `parts` per p microbatches.
// Costs are the same up to `slack`.
void check(const char* placement, const Problem& shape, int parts, double slack,
           std::initializer_list<const char*> made) {
  Problem problem = shape;
  Seconds before;
  auto rungs = rungs_below(problem, 4 * problem.shape.devices * problem.device_activation(), parts);
  for (auto rung = rungs.rbegin(); rung != rungs.rend(); ++rung) {
    problem.activation_limit = *rung;
    SCOPED_TRACE(fmt::format("{} within {}", placement, *rung / problem.device_activation()));
    const Evaluation found = run_best(placement, problem);
    EXPECT_LE(found.peak_activation(), kSame * *rung);
    EXPECT_GE(kSame * found.cost, bound_of_devices(problem, *rung));
    if (rung != rungs.rbegin()) {
      EXPECT_LE(found.cost, slack * before);
    }
    before = found.cost;
    for (const char* other : made) {
      const Evaluation order = run(other, problem);
      if (order.peak_activation() <= *rung) {
        EXPECT_LE(found.cost, slack * order.cost) << other;
      }
    }
  }
}

TEST(MemoryLimit, OfBestLinearIsNeverSlowerWhenItIsHigherNorThanHandMadeOrdersWithin) {
  testing::Random random(23);
  for (int round = 0; round < 150; ++round) {
    const Shape shape{random.integer(1, 10), 1, random.integer(1, 30), 1};
    const Problem problem = random_stages(random, shape, Placement::looped(shape.devices, 1));
    SCOPED_TRACE(fmt::format("round {}: p {} m {}", round, shape.devices, shape.microbatches));
    check("linear", problem, 4, kSame, {"1f1b", "zb-h1", "zb-h2"});
  }
}

TEST(MemoryLimit, OfBestVeeIsHardlySlowerWhenItIsHigherNorThanHandMadeOrdersWithin) {
  testing::Random random(29);
  for (int round = 0; round < testing::rounds(60); ++round) {
    const Shape shape{random.integer(1, 8), 2, random.integer(1, 20), 1};
    const Problem problem = random_stages(random, shape, Placement::vee(shape.devices));
    SCOPED_TRACE(fmt::format("round {}: p {} m {}", round, shape.devices, shape.microbatches));
    check("vee", problem, 4, kNearEnough, {"zb-v-handmade", "v-half", "v-min", "1f1b-v"});
  }
}

// Where W keeps more than p activations, 1F1B's memory is less than one microbatch needs.
TEST(MemoryLimit, IsAtLeastThatOfOneMicrobatch) {
  const Placement line = Placement::looped(2, 1);
  Problem problem = testing::make_problem({2, 1, 8, 1}, line, {1, 1, 1, 0});
  for (StageCost& stage : problem.stages) stage.weight_stash = 5 * stage.activation;
  const Evaluation found = run_best("linear", problem);
  EXPECT_EQ(found.peak_activation(), 5 * problem.device_activation());
}

// In 1F1B's own memory, too, what is planned for longer messages may be the shorter plan; and a
// hair more memory leaves room for nothing.
TEST(MemoryLimit, OfBestVeeMakesNoMakespanLongerInTheMemoryOf1F1BThanWithAHairMore) {
  for (const int p : {3, 5, 6, 8}) {
    for (const int m : {p, p + 1, p + 3, 2 * p, 3 * p}) {
      SCOPED_TRACE(fmt::format("p {} m {}", p, m));
      Problem problem =
          testing::make_problem({p, 2, m, 1}, Placement::vee(p), {9.261, 9.043, 4.6685, 0});
      problem.objective = Objective::kMakespan;
      const Seconds within = run_best("vee", problem).makespan;
      problem.activation_limit = 1.0001 * p * problem.device_activation();
      EXPECT_LE(within, kSame * run_best("vee", problem).makespan);
      problem.activation_limit.reset();
      testing::set_transfers(problem, 0.05);
      EXPECT_LE(within, kSame * run_best("vee", problem).makespan);
    }
  }
}

// Its orders keep the limit, whatever they start from.
TEST(MemoryLimit, OfBestLoopedIsKeptAndNoSlowerThanFixedOrdersWithin) {
  testing::Random random(31);
  for (int round = 0; round < testing::rounds(100); ++round) {
    const Shape shape{random.integer(1, 6), random.integer(2, 4), random.integer(1, 12), 1};
    Problem problem = random_stages(random, shape, Placement::looped(shape.devices, shape.chunks));
    const Bytes limit = random.real(1, 2 * shape.devices) * problem.device_activation();
    SCOPED_TRACE(fmt::format("round {}: p {} v {} m {}", round, shape.devices, shape.chunks,
                             shape.microbatches));
    problem.activation_limit = limit;
    const Evaluation found = run_best("looped", problem);
    EXPECT_LE(found.peak_activation(), kSame * limit);
    for (const char* other : {"interleaved-1f1b", "gis", "gis-h"}) {
      Problem unlimited = problem;
      unlimited.activation_limit.reset();
      if (find_schedule(other)->refusal(unlimited)) continue;
      const Evaluation order = run(other, unlimited);
      if (order.peak_activation() > limit) continue;
      EXPECT_LE(found.cost, kSame * order.cost) << other;
    }
  }
}

// Without messages what is planned for some may be the shorter plan: zb took 3.2% longer here.
TEST(MemoryLimit, OfBestLinearMakesNoMakespanLongerWithoutMessagesThanWithShortOnes) {
  Problem problem = testing::make_problem({3, 1, 3, 1});
  const double seconds[3][3] = {
      {18.865, 17.041, 7.882}, {19.568, 11.494, 4.895}, {10.735, 7.471, 16.633}};
  for (size_t d = 0; d < 3; ++d) {
    problem.stages[d].forward = Seconds(seconds[d][0]);
    problem.stages[d].backward_input = Seconds(seconds[d][1]);
    problem.stages[d].backward_weight = Seconds(seconds[d][2]);
  }
  problem.objective = Objective::kMakespan;
  const Seconds without = run_best("linear", problem).makespan;
  testing::set_transfers(problem, 0.01);
  EXPECT_LE(without, run_best("linear", problem).makespan);
}

// ZB-H1 is the better hand-made order here: the heuristic's own took 52 s.
TEST(MemoryLimit, OfOnePipelineIsEnoughForHandMadeZbH1) {
  Problem problem = testing::make_problem({4, 1, 4, 1});
  const double seconds[4][3] = {{5, 2, 4}, {3, 2, 4}, {2, 2, 4}, {2, 3, 2}};
  for (size_t d = 0; d < 4; ++d) {
    problem.stages[d].forward = Seconds(seconds[d][0]);
    problem.stages[d].backward_input = Seconds(seconds[d][1]);
    problem.stages[d].backward_weight = Seconds(seconds[d][2]);
    problem.stages[d].weight_stash = Bytes(0);
  }
  EXPECT_LE(run_best("linear", problem).cost, run("zb-h1", problem).cost);
  EXPECT_GT(run("zb-1p", problem).cost, run("zb-h1", problem).cost) << "as published";
}

TEST(MemoryLimit, OfALadderHasRungsFromOneMicrobatchToThreeTimesP) {
  Problem problem = testing::make_problem({6, 1, 4, 1});
  const auto rungs = rungs_below(problem, Bytes(6));
  ASSERT_EQ(rungs.size(), 3U);  // 1.5, 3 and 4.5 microbatches
  EXPECT_EQ(rungs.front(), Bytes(4.5));
  EXPECT_EQ(rungs.back(), Bytes(1.5));
  EXPECT_EQ(rungs_below(problem, Bytes(1000)).front(), Bytes(18));
  EXPECT_EQ(rungs_below(problem, Bytes(6), 2).size(), 1U);
}

}  // namespace
}  // namespace pipesim::memory_limit_test
