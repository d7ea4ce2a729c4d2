// The lower bound of programs with overlapped blocks.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/exact/prove.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/least_overlap.h"
#include "sim/planning/pairs.h"
#include "sim/planning/schedule.h"
#include "sim/search/bound.h"
#include "tests/pipeline/problems.h"

namespace pipesim::paired_bound_test {
namespace {

// Stages that differ, or not; blocks of 0.5 to 1 of their passes, no shorter than either.
Problem random_problem(testing::Random& random, const Schedule& schedule) {
  const Shape shape{random.integer(1, 6), schedule.default_chunks, random.integer(1, 20), 1};
  Problem problem = testing::random_problem(
      random, shape, schedule.place(shape.devices, shape.chunks), random.coin());
  for (StageCost& stage : problem.stages) {
    const Seconds bw = stage.backward_input + stage.backward_weight;
    stage.overlapped =
        std::max(std::max(stage.forward, bw), random.real(0.5, 1) * (stage.forward + bw));
  }
  problem.kinds.clear();
  problem.kind_of_unit.clear();
  problem.options = options_of(schedule);
  problem.objective = random.coin() ? Objective::kMakespan : Objective::kCost;
  return problem;
}

TEST(PairedBound, IsNeverAboveAnOrderWithBlocks) {
  testing::Random random(11);
  int compared = 0;
  int tighter = 0;
  for (int round = 0; round < 20; ++round) {
    for (const char* name : {"1f1b", "zb-h1", "zb-h2", "gpipe", "dualpipev", "v-half"}) {
      const Schedule& schedule = *find_schedule(name);
      const Problem problem = random_problem(random, schedule);
      if (schedule.refusal(for_planning(problem))) continue;
      const Program order = schedule.plan(for_planning(problem));
      const Bytes held = evaluate(order, problem).peak_activation();
      for (const Bytes limit : {held, 1.5 * held}) {
        SCOPED_TRACE(fmt::format("round {} {}", round, name));
        const Program paired = with_pairs(order, problem, limit, 2e4);
        const Evaluation result = evaluate(paired, problem);
        const Bytes kept = std::max(limit, result.peak_activation());
        const Seconds bound = bound_with_pairs(problem, kept).seconds();
        EXPECT_LE(bound.value(), time_of(result, problem.objective).value() * (1 + 1e-9));
        const Seconds scaled = lower_bound(without_overlap(problem), kept);
        EXPECT_GE(bound.value(), scaled.value() * (1 - 1e-9));
        ++compared;
        tighter += bound > (1 + 1e-6) * scaled ? 1 : 0;
      }
    }
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(tighter, compared / 3);
}

// One device that holds enough: all but the first F and the last backward run in blocks.
TEST(PairedBound, IsReachedByOneDevice) {
  Problem problem = testing::make_problem({1, 1, 6, 1}, {2, 2, 2, 0});
  problem.stages[0].overlapped = Seconds(4);
  EXPECT_EQ(bound_with_pairs(problem, Bytes(6)).seconds(), Seconds(6 * 4 + 2));
  PassLists lists(1);
  std::vector<OverlappedPair> pairs;
  lists[0].push_back(make_pass(PassKind::kF, 0));
  for (int i = 1; i < 6; ++i) {
    lists[0].push_back(make_pass(PassKind::kFB, i - 1));
    pairs.push_back({make_pass(PassKind::kF, i), make_pass(PassKind::kBW, i - 1)});
  }
  lists[0].push_back(make_pass(PassKind::kBW, 5));
  const Program blocks(problem.shape, problem.placement, lists, pairs);
  EXPECT_EQ(evaluate(blocks, problem).makespan, Seconds(2 + 5 * 4 + 4));
}

TEST(PairedBound, IsThatOfSinglePassesWhereBlocksSaveNothing) {
  Problem problem = testing::make_problem({4, 1, 8, 1}, {2, 2, 2, 1});
  EXPECT_EQ(bound_with_pairs(problem, Bytes(4)).seconds(), lower_bound(problem, Bytes(4)));
  for (StageCost& stage : problem.stages) stage.overlapped = Seconds(6);
  EXPECT_EQ(bound_with_pairs(problem, Bytes(4)).seconds(), lower_bound(problem, Bytes(4)));
}

// A proof says of what it speaks: single passes are ordered by CBC, blocks are bounded.
TEST(Proof, WithPairsIsByTheBoundAlone) {
  Problem problem = testing::make_problem({2, 1, 6, 1}, {2, 2, 2, 0});
  for (StageCost& stage : problem.stages) stage.overlapped = Seconds(4);
  const Program order = with_pairs(find_schedule("1f1b")->plan(problem), problem, Bytes(3), 1e5);
  const exact::Proof proof = exact::prove(order, problem, Bytes(3), {});
  EXPECT_EQ(proof.ended, exact::Ended::kPairs);
  EXPECT_FALSE(proof.proven());
  EXPECT_EQ(proof.bound, bound_with_pairs(problem, Bytes(3)).seconds());
  EXPECT_EQ(proof.time, time_of(evaluate(order, problem), problem.objective));
}

}  // namespace
}  // namespace pipesim::paired_bound_test
