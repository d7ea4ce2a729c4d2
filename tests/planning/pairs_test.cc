// Overlapped blocks joined in any order.
#include "sim/planning/pairs.h"

#include <gtest/gtest.h>

#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

Problem problem_of(const Schedule& schedule, int devices, int microbatches, Seconds block) {
  Problem problem;
  problem.shape = {devices, schedule.default_chunks, microbatches, 1};
  problem.placement = schedule.place(devices, schedule.default_chunks);
  problem.stages.assign(static_cast<size_t>(problem.placement.virtual_stages()),
                        StageCost{Seconds(0.020), Seconds(0.024), Seconds(0.016), block, Seconds(0),
                                  Bytes(1), Bytes(1)});
  problem.options = options_of(schedule);
  return problem;
}

// A block delays both its results, so that a steady state of blocks needs more microbatches in
// flight than 1F1B has.
TEST(Pairs, MakeASteadyStateOfBlocks) {
  const Schedule& ahead = *find_schedule("zb-h2");
  const Problem problem = problem_of(ahead, 4, 16, Seconds(0.042));
  const Program order = ahead.plan(problem);
  const Program paired = with_pairs(order, problem, Bytes(8), 1e6);
  EXPECT_GE(paired.pairs().size(), 4U * 8);
  EXPECT_LT(evaluate(paired, problem).makespan, 0.9 * evaluate(order, problem).makespan);
  EXPECT_LE(evaluate(paired, problem).peak_activation(), Bytes(8));
}

// A block holds its F and its backward at once: without room for one more none can be.
TEST(Pairs, KeepTheLimit) {
  const Schedule& plain = *find_schedule("1f1b");
  const Problem problem = problem_of(plain, 4, 16, Seconds(0.042));
  const Program paired = with_pairs(plain.plan(problem), problem, Bytes(4), 1e6);
  EXPECT_LE(evaluate(paired, problem).peak_activation(), Bytes(4));
}

TEST(Pairs, AreNotMadeWhereTheyTakeAsLong) {
  const Schedule& plain = *find_schedule("1f1b");
  EXPECT_FALSE(gains_by_pairs(problem_of(plain, 4, 16, Seconds(0.060))));
  EXPECT_TRUE(gains_by_pairs(problem_of(plain, 4, 16, Seconds(0.059))));
}

TEST(Pairs, ComeApartAsTheyWere) {
  const Schedule& plain = *find_schedule("1f1b");
  const Problem problem = problem_of(plain, 4, 16, Seconds(0.042));
  const Program order = plain.plan(problem);
  const Program apart = without_pairs(with_pairs(order, problem, Bytes(5), 1e6));
  EXPECT_TRUE(apart.pairs().empty());
  EXPECT_EQ(apart.size(), order.size());
}

TEST(Pairs, EndWithTheEffort) {
  const Schedule& plain = *find_schedule("1f1b");
  const Problem problem = problem_of(plain, 4, 16, Seconds(0.042));
  const Program order = plain.plan(problem);
  EXPECT_TRUE(with_pairs(order, problem, Bytes(5), 0).same_order(order));
}

}  // namespace
}  // namespace pipesim
