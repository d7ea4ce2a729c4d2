// Refinement of orders with overlapped blocks: blocks are moved, joined and taken apart.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <vector>

#include "sim/execution/evaluate.h"
#include "sim/planning/pairs.h"
#include "sim/planning/schedule.h"
#include "sim/search/bound.h"
#include "sim/search/order.h"
#include "sim/search/planned_within.h"
#include "sim/search/refine.h"
#include "tests/pipeline/problems.h"

namespace pipesim::paired_refine_test {
namespace {

// Forward, input and weight gradients of 20, 24 and 16, whose block takes 42 of the 60.
Problem problem_of(const Shape& shape, Placement placement) {
  Problem problem = testing::make_problem(shape, std::move(placement), {20, 24, 16, 0});
  for (StageCost& stage : problem.stages) stage.overlapped = Seconds(42);
  problem.objective = Objective::kMakespan;
  return problem;
}

Seconds time_in(const Problem& problem, const Program& program) {
  return time_of(evaluate(program, problem), problem.objective);
}

// The shortest of the orders within the limit, neighbours joined.
Program greedy(const Problem& problem, Bytes limit) {
  std::vector<Program> joined;
  for (const Program& order : planned_within(problem, limit, Included::kAll)) {
    joined.push_back(with_pairs(order, problem, limit, 1e7));
  }
  return *std::ranges::min_element(
      joined, {}, [&problem](const Program& each) { return time_in(problem, each); });
}

TEST(RefineWithBlocks, GainsOnNeighboursJoined) {
  const Problem problem = problem_of({4, 2, 16, 1}, Placement::vee(4));
  const Program start = greedy(problem, Bytes(8));
  const Program refined = refine(start, problem, Bytes(8), {1, 2e6});
  EXPECT_LT(time_in(problem, refined), 0.985 * time_in(problem, start));
  EXPECT_LE(evaluate(refined, problem).peak_activation(), Bytes(8));
  EXPECT_FALSE(refined.pairs().empty());
}

TEST(RefineWithBlocks, IsNeverLongerAndKeepsTheLimit) {
  testing::Random random(7);
  int shorter = 0;
  for (int round = 0; round < 40; ++round) {
    const bool vee = random.coin();
    const int p = random.integer(1, 6);
    const Shape shape{p, vee ? 2 : 1, random.integer(1, 20), 1};
    Problem problem = testing::random_problem_with_blocks(
        random, shape, vee ? Placement::vee(p) : Placement::looped(p, 1));
    problem.objective = random.coin() ? Objective::kMakespan : Objective::kCost;
    const Bytes limit = random.real(1, p + 1) * for_planning(problem).device_activation();
    for (const Program& order : planned_within(problem, limit, Included::kSought)) {
      SCOPED_TRACE(fmt::format("round {}: p {} m {}", round, p, shape.microbatches));
      const Program start = with_pairs(order, problem, limit, 1e5);
      const Program refined = refine(start, problem, limit, {1, 1e5});
      const Seconds time = time_in(problem, refined);
      EXPECT_LE(time.value(), time_in(problem, start).value() * (1 + 1e-9));
      EXPECT_GE(time.value() * (1 + 1e-9), bound_with_pairs(problem, limit).seconds().value());
      EXPECT_LE(evaluate(refined, problem).peak_activation().value(), limit.value() * (1 + 1e-9));
      shorter += time < 0.999 * time_in(problem, start) ? 1 : 0;
    }
  }
  EXPECT_GT(shorter, 20);
}

TEST(RefineWithBlocks, IsTheSameForASeed) {
  const Problem problem = problem_of({4, 2, 12, 1}, Placement::vee(4));
  const Program start = with_pairs(find_schedule("v-half")->plan(problem), problem, Bytes(8), 1e6);
  const RefineOptions options{.seed = 3, .effort = 3e5};
  EXPECT_TRUE(refine(start, problem, Bytes(8), options)
                  .same_order(refine(start, problem, Bytes(8), options)));
}

// Microbatches that cost unequally have no table of blocks: each block asks for its own seconds.
TEST(RefineWithBlocks, TakesBlocksOfUnequalMicrobatches) {
  Problem problem = problem_of({4, 1, 8, 1}, Placement::looped(4, 1));
  testing::set_factors(problem, {1, 1.5, 1, 2, 0.5, 1, 2, 1});
  const Program start = with_pairs(find_schedule("1f1b")->plan(problem), problem, Bytes(10), 1e6);
  ASSERT_FALSE(start.pairs().empty());
  const Program refined = refine(start, problem, Bytes(10), {1, 1e6});
  EXPECT_LT(time_in(problem, refined), 0.98 * time_in(problem, start));
  EXPECT_LE(evaluate(refined, problem).peak_activation(), Bytes(10));
  EXPECT_FALSE(refined.pairs().empty());
}

// A device's 1F1B of four microbatches.
Order::Word one_f_one_b(int ahead) {
  Order::Word word(static_cast<size_t>(ahead), 0);
  for (int i = 0; i < 4 - ahead; ++i) word.insert(word.end(), {0, 1, 2});
  for (int i = 0; i < ahead; ++i) word.insert(word.end(), {1, 2});
  return word;
}

std::vector<Order::Word> two_devices() {
  std::vector<Order::Word> words{one_f_one_b(2), one_f_one_b(1)};
  words[0][3] |= Order::kJoined;  // F2 & B0
  return words;
}

bool change(Order& order, testing::Random& random, double bound) {
  const int device = random.integer(0, 1);
  const int from = random.integer(0, order.length(device) - 1);
  const int to = random.integer(0, order.length(device) - 1);
  const int which = random.integer(0, 2);
  const bool coin = random.coin();
  return which == 0   ? order.split(device, from, coin, bound)
         : which == 1 ? order.join(device, from, to, coin, bound)
                      : from != to && order.move(device, from, to, bound);
}

// Random changes one after the other give what an evaluation of the words from the start gives.
// Bounds are near and far: an order that was changed takes and refuses the same.
TEST(OrderWithBlocks, FollowsEveryChange) {
  const Problem problem = problem_of({2, 1, 4, 1}, Placement::looped(2, 1));
  for (const double above : {15.0, 1e9}) {
    Order order(problem, 4, 3, two_devices(), true);
    ASSERT_TRUE(order.evaluate());
    testing::Random random(5), again(5);
    int changed = 0;
    for (int i = 0; i < 4000; ++i) {
      const double bound = order.score() + above;
      Order anew(problem, 4, 3, order.words(), true);
      ASSERT_TRUE(anew.evaluate());
      ASSERT_EQ(anew.cost(), order.cost());
      const bool done = change(order, random, bound);
      ASSERT_EQ(done, change(anew, again, bound)) << i;
      changed += done ? 1 : 0;
    }
    EXPECT_GT(changed, 200);
  }
}

TEST(OrderWithBlocks, JoinsNoBlockAgain) {
  const Problem problem = problem_of({2, 1, 4, 1}, Placement::looped(2, 1));
  Order order(problem, 4, 3, two_devices(), true);
  ASSERT_TRUE(order.evaluate());
  EXPECT_FALSE(order.join(0, 2, 3, false, 1e9));
  EXPECT_TRUE(order.join(0, 2, 3, true, 1e9)) << "its W joins";
  EXPECT_FALSE(order.join(0, 2, 3, true, 1e9));
}

}  // namespace
}  // namespace pipesim::paired_refine_test
