#include "sim/planning/player.h"

#include <gtest/gtest.h>

#include "sim/execution/evaluate.h"
#include "tests/pipeline/problems.h"

namespace pipesim::player_test {
namespace {

Problem drawn_problem(testing::Random& random) {
  const int devices = random.integer(1, 5);
  const int chunks = random.integer(1, 3);
  const Placement place =
      chunks == 2 && random.coin() ? Placement::vee(devices) : Placement::looped(devices, chunks);
  const Shape shape{devices, chunks, random.integer(1, 9), 1};
  Problem problem = testing::make_problem(shape, place, {1, 1, 1, 1});
  for (StageCost& cost : problem.stages) {
    cost.forward = Seconds(random.integer(0, 9));
    cost.backward_input = Seconds(random.integer(0, 9));
    cost.backward_weight = Seconds(random.integer(0, 9));
    cost.activation = Bytes(random.integer(1, 4));
    cost.weight_stash = Bytes(random.integer(0, 4));
  }
  problem.objective = random.coin() ? Objective::kCost : Objective::kMakespan;
  return problem;
}

// Runs a drawn pass of a drawn device, if that has one; counts the most that it holds.
bool run_any(Player& player, testing::Random& random, std::vector<double>& most_held) {
  const int d = random.integer(0, player.devices() - 1);
  const int number = random.integer(0, static_cast<int>(player.chunks(d).size()) - 1);
  Player::Chunk& chunk = player.chunk(d, number);
  const int kind = random.integer(0, 2);
  if (kind == 0 && player.forward_sent(chunk)) {
    player.run_forward(chunk);
  } else if (kind == 1 && player.backward_sent(chunk)) {
    player.run_backward(chunk);
  } else if (kind == 2 && player.device(d).owed() > 0) {
    player.run_weight(d);
  } else {
    return false;
  }
  most_held[d] = std::max(most_held[d], player.held(d));
  return true;
}

void run(Player& player, int passes, testing::Random& random, std::vector<double>& most_held) {
  while (passes > 0) passes -= run_any(player, random, most_held) ? 1 : 0;
}

TEST(Player, TimesAndBytesAreThoseOfItsProgram) {
  testing::Random random(1);
  for (int i = 0; i < 300; ++i) {
    const Problem problem = drawn_problem(random);
    const int passes = 3 * problem.placement.virtual_stages() * problem.shape.microbatches;
    Player player(problem, ticks);
    player.reset();
    std::vector<double> held(problem.shape.devices, 0);
    run(player, passes, random, held);
    const PlanTime least = player.least_time();
    const PlanTime time = player.finish();

    const Evaluation result = evaluate({problem.shape, problem.placement, player.lists()}, problem);
    EXPECT_EQ(time, plan_time(result, problem.objective));
    EXPECT_EQ(time, least);  // nothing is left to run
    for (int d = 0; d < problem.shape.devices; ++d) {
      EXPECT_EQ(player.held(d), 0);
      EXPECT_EQ(Bytes(held[d]), result.devices[d].peak_activation);
    }
  }
}

TEST(Player, ACopyGoesBackToItsMoment) {
  testing::Random random(2);
  for (int i = 0; i < 100; ++i) {
    const Problem problem = drawn_problem(random);
    const int passes = 3 * problem.placement.virtual_stages() * problem.shape.microbatches;
    Player player(problem, ticks);
    player.reset();
    std::vector<double> held(problem.shape.devices, 0);
    run(player, passes / 3, random, held);
    const Player moment = player;
    for (int again = 0; again < 2; ++again) {
      player = moment;
      run(player, passes - passes / 3, random, held);
      const PlanTime time = player.finish();
      const Program program{problem.shape, problem.placement, player.lists()};
      EXPECT_EQ(time, plan_time(evaluate(program, problem), problem.objective));
    }
  }
}

TEST(Player, RunsTheWeightThatIsOwedLongest) {
  const Problem problem =
      testing::make_problem({1, 2, 1, 1}, Placement::looped(1, 2), {1, 1, 1, 0});
  Player player(problem, ticks);
  player.reset();
  for (const int c : {0, 1}) player.run_forward(player.chunk(0, c));
  for (const int c : {1, 0}) player.run_backward(player.chunk(0, c));
  EXPECT_EQ(player.owed_longest(0).number, 1);
  player.run_weight(0);
  EXPECT_EQ(player.owed_longest(0).number, 0);
}

}  // namespace
}  // namespace pipesim::player_test
