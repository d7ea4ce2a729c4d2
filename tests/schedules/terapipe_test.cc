// TeraPipe beyond its claims: its order, causal slices, and where it differs from gpipe, looped-bfs
// and seq-1f1b.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>

#include "sim/execution/evaluate.h"
#include "sim/pipeline/unequal_units.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::terapipe_test {
namespace {

constexpr testing::Times kTimes{10, 12, 8, 0};

std::string written(const char* schedule, const Problem& problem, int device) {
  const Program program = find_schedule(schedule)->plan(problem);
  std::string text;
  for (const Pass& pass : program.passes(device)) {
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", to_text(pass.kind), pass.microbatch);
  }
  return text;
}

Evaluation result_of(const char* schedule, const Problem& problem) {
  return evaluate(find_schedule(schedule)->plan(problem), problem);
}

// Attention is `share` of F and of B; slice k of n takes (2k+1)/n of an even part of it.
Problem causal(const Shape& shape, double share, const testing::Times& times = kTimes) {
  Problem problem = testing::make_problem(shape, times);
  std::vector<UnitKind> kinds;
  std::vector<std::uint32_t> of_unit;
  for (int slice = 0; slice < shape.splits; ++slice) {
    const double factor = 1 - share + share * (2 * slice + 1) / shape.splits;
    UnitKind kind{1, problem.stages};
    for (StageCost& cost : kind.stages) {
      cost.forward = factor * cost.forward;
      cost.backward_input = factor * cost.backward_input;
    }
    kinds.push_back(std::move(kind));
  }
  for (int unit = 0; unit < shape.units(); ++unit) of_unit.push_back(unit % shape.splits);
  set_kinds(problem, std::move(kinds), std::move(of_unit));
  return problem;
}

TEST(TeraPipe, RunsBackInExactlyTheOppositeOrder) {
  const Problem problem = testing::make_problem({2, 1, 2, 2});  // units 0, 1 and 2, 3
  for (const int device : {0, 1}) {
    EXPECT_EQ(written("terapipe", problem, device), "F0 F1 F2 F3 BW3 BW2 BW1 BW0");
  }
}

TEST(TeraPipe, IsLoopedBfsOfOneChunkWithoutSplitsAndNotGPipe) {
  const Problem problem = testing::make_problem({3, 1, 5, 1});
  for (int device = 0; device < 3; ++device) {
    EXPECT_EQ(written("terapipe", problem, device), written("looped-bfs", problem, device));
    EXPECT_NE(written("terapipe", problem, device), written("gpipe", problem, device));
  }
}

TEST(TeraPipe, HasABubbleOfItsLongestSlice) {
  const Schedule& terapipe = *find_schedule("terapipe");
  for (const int p : {1, 2, 4, 7}) {
    for (const int m : {1, 2, 5}) {
      for (const int splits : {1, 2, 5}) {
        for (const double transfer : {0.0, 3.0}) {
          const Problem problem = causal({p, 1, m, splits}, 0.4, {10, 12, 8, transfer});
          ASSERT_TRUE(terapipe.claims.bubble.holds(problem));
          const Evaluation result = result_of("terapipe", problem);
          const double last = 0.6 + 0.4 * (2 * splits - 1) / splits;
          EXPECT_NEAR((result.cost - result.work).value(), (p - 1) * (22 * last + 8 + 2 * transfer),
                      1e-9);
          EXPECT_NEAR(terapipe.claims.bubble.bubble(problem).value(),
                      (result.cost - result.work).value(), 1e-9);
        }
      }
    }
  }
}

TEST(TeraPipe, ClaimsNoBubbleWhereSlicesDifferByStage) {
  Problem problem = causal({4, 1, 3, 2}, 0.4);
  problem.kinds[1].stages[2].forward = Seconds(1);
  problem.kinds[0].stages[2].forward = Seconds(1);
  EXPECT_FALSE(find_schedule("terapipe")->claims.bubble.holds(problem));
}

// Equal slices: the bubble of seq-1f1b, the memory of all microbatches.
TEST(TeraPipe, HoldsMoreThanSeq1F1BForTheSameBubble) {
  const Problem problem = testing::make_problem({4, 1, 8, 4}, kTimes);
  const Evaluation tera = result_of("terapipe", problem);
  const Evaluation seq = result_of("seq-1f1b", problem);
  EXPECT_NEAR(tera.cost.value(), seq.cost.value(), 1e-9);
  for (int device = 0; device < 4; ++device) {
    EXPECT_EQ(tera.devices[device].peak_in_flight, 32);
    EXPECT_EQ(seq.devices[device].peak_in_flight, 7 - device);
  }
}

// Causal slices: devices of seq-1f1b run an F of one slice beside a BW of another, whose lengths
// differ, in every microbatch; TeraPipe waits for its longest slice once each way.
TEST(TeraPipe, IsFasterThanSeq1F1BWhereSlicesAreCausal) {
  const Problem problem = causal({4, 1, 8, 4}, 0.4);
  EXPECT_LT(result_of("terapipe", problem).makespan, result_of("seq-1f1b", problem).makespan);
}

}  // namespace
}  // namespace pipesim::terapipe_test
