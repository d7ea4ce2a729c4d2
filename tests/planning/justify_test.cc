#include "sim/planning/justify.h"

#include <gtest/gtest.h>
#include <vector>

#include "sim/execution/evaluate.h"
#include "sim/planning/list_schedule.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::justify_test {
namespace {

// Whatever is ready, in an order of kinds that is drawn anew for every device.
Program drawn_program(const Problem& problem, testing::Random& random) {
  std::vector<bool> backward_first;
  for (int d = 0; d < problem.shape.devices; ++d) backward_first.push_back(random.coin());
  return list_schedule(problem, [&](const Turn& turn) {
    using enum PassKind;
    return backward_first[turn.device()] ? turn.first_ready({kB, kF, kW})
                                         : turn.first_ready({kW, kF, kB});
  });
}

Problem drawn_problem(testing::Random& random) {
  const int devices = random.integer(1, 5);
  const int chunks = random.integer(1, 3);
  const Placement place =
      chunks == 2 && random.coin() ? Placement::vee(devices) : Placement::looped(devices, chunks);
  const Shape shape{devices, chunks, random.integer(1, 3) * devices, 1};
  Problem problem = testing::make_problem(shape, place, {1, 1, 1, 0.5 * random.integer(0, 2)});
  for (StageCost& cost : problem.stages) {
    cost.forward = Seconds(random.integer(0, 9));
    cost.backward_input = Seconds(random.integer(0, 9));
    cost.backward_weight = Seconds(random.integer(0, 9));  // frozen layers have no W to speak of
    cost.activation = Bytes(random.integer(1, 4));
    cost.weight_stash = random.real(0, 1) * cost.activation;
  }
  const double share = random.real(0.3, 2);
  problem.activation_limit = std::max(1.0, share * devices) * problem.device_activation();
  return for_planning(std::move(problem));
}

TEST(Justifier, IsNeverLongerAndKeepsTheLimit) {
  testing::Random random(91);
  int shorter = 0;
  for (int round = 0; round < 400; ++round) {
    const Problem problem = drawn_problem(random);
    const Bytes limit = *problem.activation_limit;
    const Program program = drawn_program(problem, random);
    const Seconds before = evaluate(program, problem).cost;

    Justifier justify(problem);
    justify.set_limit(limit);
    EXPECT_NEAR(1e-12 * justify.time(program.lists()).time, before.value(), 1e-9 * before.value());
    const double span = 1e-12 * justify.run(program.lists()).time;
    PassLists lists(problem.shape.devices);
    justify.save(lists);
    const Evaluation after = evaluate({problem.shape, problem.placement, lists}, problem);
    EXPECT_NEAR(after.cost.value(), span, 1e-9 * span) << "round " << round;
    EXPECT_LE(after.cost, (1 + 1e-9) * before) << "round " << round;
    EXPECT_LE(after.peak_activation(), (1 + 1e-9) * limit) << "round " << round;
    if (after.cost < (1 - 1e-9) * before) ++shorter;

    const Bytes asked = justify.asked();
    EXPECT_LE(asked, (1 + 1e-9) * limit);
    Justifier within(problem);
    within.set_limit(asked);
    within.run(program.lists());
    PassLists same(problem.shape.devices);
    within.save(same);
    EXPECT_EQ(same, lists) << "round " << round << " within what it asked for";
  }
  EXPECT_GT(shorter, 100);
}

// One microbatch after the other makes both devices wait. With memory for two, the second F of
// each device fits into the time in which it waits; with memory for one nothing can change.
TEST(Justifier, FillsAGap) {
  Problem problem = testing::make_problem({2, 1, 2, 1}, {1, 1, 1, 0});
  problem.activation_limit = Bytes(2);
  problem = for_planning(std::move(problem));
  using enum PassKind;
  const PassLists one_by_one{{make_pass(kF, 0), make_pass(kB, 0), make_pass(kW, 0),
                              make_pass(kF, 1), make_pass(kB, 1), make_pass(kW, 1)},
                             {make_pass(kF, 0), make_pass(kB, 0), make_pass(kW, 0),
                              make_pass(kF, 1), make_pass(kB, 1), make_pass(kW, 1)}};
  Justifier justify(problem);
  justify.set_limit(Bytes(2));
  EXPECT_EQ(justify.time(one_by_one).time, 10e12);
  EXPECT_EQ(justify.run(one_by_one).time, 7e12);
  justify.set_limit(Bytes(1));
  EXPECT_EQ(justify.run(one_by_one).time, 10e12);
}

}  // namespace
}  // namespace pipesim::justify_test
