// Orders of every kind as words, refined and bounded: two directions, sequence splits,
// recomputation, blocks, a way back that is not always waited for, unequal units in any order.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/spelling.h"
#include "sim/execution/with_backwards_apart.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/search/bound_like.h"
#include "sim/search/held_back.h"
#include "sim/search/improve.h"
#include "sim/search/order.h"
#include "sim/search/refine.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim::any_order_test {
namespace {

using testing::Random;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Instance {
  Program program;
  Problem problem;
  std::string text;
};

Seconds time_in(const Problem& problem, const Program& program) {
  return time_of(evaluate(program, problem), problem.objective);
}

Placement any_placement(Random& random, Shape& shape) {
  switch (random.integer(0, 3)) {
    case 0:
      shape.devices = 2 * random.integer(1, 2);
      shape.chunks = 2;
      shape.microbatches = random.integer(2, 7);
      if (shape.microbatches % 2 != 0) shape.splits = 1;  // whole microbatches in a direction
      return Placement::bidirectional(shape.devices);
    case 1:
      shape.chunks = 2;
      return Placement::vee(shape.devices);
    default:
      shape.chunks = random.integer(1, 2);
      return Placement::looped(shape.devices, shape.chunks);
  }
}

// A random program in the given mix of features, and a problem of random costs for it.
Instance any_instance(Random& random, bool overlap) {
  Shape shape{random.integer(1, 4), 1, random.integer(1, 6), random.integer(1, 3)};
  const Placement place = any_placement(random, shape);
  Problem problem = testing::random_problem(random, shape, place, false);
  problem.objective = random.coin() ? Objective::kMakespan : Objective::kCost;
  const bool unequal = random.integer(0, 2) == 0;
  if (unequal) {
    testing::set_factors(problem,
                         testing::random_factors(random, static_cast<size_t>(shape.units())));
  }
  Program program = testing::RandomProgram(random, shape, place, overlap).make();
  const bool ahead = place == Placement::looped(shape.devices, shape.chunks) && random.coin();
  if (ahead) {
    program = Program(shape, place, program.lists(),
                      {program.pairs().begin(), program.pairs().end()}, WrapAround::kFirstOfGroup);
  }
  std::string text = fmt::format(
      "p {} v {} m {} n {} directions {}{}{}{}{}", shape.devices, shape.chunks, shape.microbatches,
      shape.splits, place.directions(), unequal ? " unequal" : "", ahead ? " ahead" : "",
      program.recomputes() ? " R" : "", program.pairs().empty() ? "" : " FB");
  return {std::move(program), std::move(problem), std::move(text)};
}

constexpr int kRounds = testing::rounds(400);

TEST(Spelling, GivesTheProgramBackAndOrderItsTime) {
  Random random(1);
  for (int round = 0; round < kRounds; ++round) {
    const Instance one = any_instance(random, random.coin());
    SCOPED_TRACE(fmt::format("round {}: {}", round, one.text));
    const auto spelled = pipesim::spelled(one.program, one.problem);
    ASSERT_TRUE(spelled);
    const Program again = program_of(one.problem, spelled->spelling, spelled->words);
    const Program apart = with_backwards_apart(one.program);
    if (spelled->spelling.units.empty()) {
      EXPECT_LE(time_in(one.problem, again), kRounding * time_in(one.problem, apart));
    } else {
      for (int d = 0; d < one.problem.shape.devices; ++d) {
        ASSERT_EQ(again.passes(d).size(), apart.passes(d).size());
      }
      EXPECT_EQ(time_in(one.problem, again), time_in(one.problem, apart));
    }
    Order order(one.problem, one.problem.shape.units(), kInfinite, spelled->words,
                !one.program.pairs().empty(), spelled->spelling);
    ASSERT_TRUE(order.evaluate());
    EXPECT_EQ(order.cost(), time_in(one.problem, again).value());
  }
}

// One of all changes of an order, at random.
bool change(Order& order, Random& random, int device) {
  const int from = random.integer(0, order.length(device) - 1);
  const int to = random.integer(0, order.length(device) - 1);
  const int which = order.has_blocks() ? random.integer(0, 2) : 1;
  const bool coin = random.coin();
  return which == 0   ? order.split(device, from, coin, 1e9)
         : which == 2 ? order.join(device, from, to, coin, 1e9)
                      : from != to && order.move(device, from, to, 1e9);
}

// Every order that is accepted is a program, keeps the limit, and takes what it says.
TEST(Spelling, FollowsEveryChangeOfEveryKindOfOrder) {
  Random random(2);
  int changed = 0;
  for (int round = 0; round < kRounds / 4; ++round) {
    const Instance one = any_instance(random, random.coin());
    SCOPED_TRACE(fmt::format("round {}: {}", round, one.text));
    const auto spelled = pipesim::spelled(one.program, one.problem);
    const double limit = evaluate(one.program, one.problem).peak_activation().value() + 1;
    Order order(one.problem, one.problem.shape.units(), limit, spelled->words,
                !one.program.pairs().empty(), spelled->spelling);
    if (!order.evaluate()) continue;  // B and W apart may hold more
    for (int i = 0; i < 60; ++i) {
      const int device = random.integer(0, one.problem.shape.devices - 1);
      if (!change(order, random, device)) continue;
      ++changed;
      const Program program = program_of(one.problem, spelled->spelling, order.words());
      const Evaluation result = evaluate(program, one.problem);
      ASSERT_EQ(order.cost(), time_of(result, one.problem.objective).value());
      ASSERT_LE(result.peak_activation().value(), limit * kRounding);
    }
  }
  EXPECT_GT(changed, kRounds / 2);
}

TEST(Refine, ShortensOrdersOfEveryKindWithinTheLimit) {
  Random random(3);
  int shorter = 0;
  for (int round = 0; round < kRounds / 4; ++round) {
    const Instance one = any_instance(random, random.coin());
    SCOPED_TRACE(fmt::format("round {}: {}", round, one.text));
    const Program apart = with_backwards_apart(one.program);
    const Bytes limit = evaluate(apart, one.problem).peak_activation();
    const Program refined = refine(one.program, one.problem, limit, {1, 1e5});
    const Evaluation after = evaluate(refined, one.problem);
    const Seconds before = time_in(one.problem, apart);
    const Seconds time = time_of(after, one.problem.objective);
    EXPECT_LE(time, kRounding * before);
    EXPECT_LE(after.peak_activation(), kRounding * limit);
    EXPECT_EQ(refined.recomputes(), one.program.recomputes());
    EXPECT_EQ(refined.wrap_around(), one.program.wrap_around());
    shorter += time < 0.99 * before ? 1 : 0;
    EXPECT_GE(kRounding * time, bound_like(one.program, one.problem, limit, true));
  }
  EXPECT_GT(shorter, kRounds / 10);
}

// Random orders, and refined ones, whose memory is the limit.
TEST(BoundLike, IsBelowEveryOrder) {
  Random random(4);
  for (int round = 0; round < 5 * kRounds; ++round) {
    const Instance one = any_instance(random, round % 2 == 0);
    SCOPED_TRACE(fmt::format("round {}: {}", round, one.text));
    const Evaluation result = evaluate(one.program, one.problem);
    const Seconds time = time_of(result, one.problem.objective);
    const Bytes limit = std::max(result.peak_activation(), Bytes(1));
    const ReasonedBound bound =
        reasoned_bound_like(one.program, one.problem, limit, !one.program.pairs().empty());
    EXPECT_LE(bound.seconds, kRounding * time) << to_text(bound.reason);
    EXPECT_GT(bound.seconds, Seconds(0));
    EXPECT_EQ(bound.seconds,
              bound_like(one.program, one.problem, limit, !one.program.pairs().empty()));
  }
}

TEST(HeldBack, KeepsWhatOneMicrobatchNeedsInEveryKindOfOrder) {
  Random random(5);
  int held = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Instance one = any_instance(random, false);
    SCOPED_TRACE(fmt::format("round {}: {}", round, one.text));
    const Program apart = with_backwards_apart(one.program);
    const Bytes peak = evaluate(apart, one.problem).peak_activation();
    for (const double part : {0.3, 0.6, 0.9}) {
      try {
        const Program program = held_back(apart, one.problem, part * peak);
        EXPECT_LE(evaluate(program, one.problem).peak_activation(), kRounding * (part * peak));
        ++held;
      } catch (const InfeasibleError& error) {
        EXPECT_NE(std::string(error.what()).find("one microbatch takes"), std::string::npos);
      }
    }
  }
  EXPECT_GT(held, kRounds / 2);
}

Case case_with(const std::string& schedule, const std::string& costs, const std::string& more) {
  return prepare_first(read_scenario(YamlSource("test", "schedule: " + schedule + R"(
parallel: {pipeline_model_parallel_size: 4}
cost: {kind: given, per: device, )" + costs + ", transfer: 0.4 ms}\n" +
                                                            more)));
}

// Schedules, and keys of a scenario, that bring each kind.
TEST(Improve, TakesEveryKindOfOrder) {
  struct Kind {
    std::string schedule, more;
    bool batch = true;
  };
  const std::vector<Kind> kinds{
      {"chimera", ""},
      {"{name: dualpipe, overlap: false}", ""},
      {"dualpipe", ""},
      {"seq-1f1b", ""},
      {"terapipe", ""},
      {"{name: interleaved-1f1b, zero_bubble_table5_dependencies: true}", ""},
      {"1f1b", "recompute: full\n"},
      {"{name: interleaved-1f1b, recompute: {granularity: full, chunks: 1}}", ""},
      {"chimera", "recompute: full\n"},
      {"1f1b", "framework: {transfers: blocking}\n"},
      {"gpipe", "framework: {transfers: blocking}\n"},
      {"looped-bfs", "batch: {num_microbatches: 3, factors: [1, 2, 3]}\n", false}};
  const std::string equal =
      "forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, overlapped: 25 ms";
  const std::string unequal =
      "forward: [10 ms, 14 ms, 9 ms, 11 ms], backward_input: [9 ms, 13 ms, 15 ms, 12 ms], "
      "backward_weight: 8 ms, overlapped: 29 ms";
  for (const Kind& kind : kinds) {
    for (const std::string& costs : {equal, unequal}) {
      SCOPED_TRACE(kind.schedule + " " + kind.more + costs);
      const Case made = case_with(
          kind.schedule, costs, kind.more + (kind.batch ? "batch: {num_microbatches: 12}\n" : ""));
      const Improved improved = improve(made, std::nullopt, {.seed = 1, .effort = 3e5});
      EXPECT_LE(improved.seconds_after, improved.seconds_before);
      EXPECT_EQ(improved.seconds_after, simulate(improved.after).report.iteration);
      EXPECT_LE(improved.peak_after, kRounding * improved.limit);
      EXPECT_GE(kRounding * improved.time, improved.bound);
      EXPECT_FALSE(improved.held_back);
      const Bytes less =
          std::max(0.8 * improved.limit, for_planning(made.problem).device_activation());
      const Improved within = improve(made, less, {.seed = 1, .effort = 1e5});
      EXPECT_LE(within.peak_after, kRounding * within.limit);
      EXPECT_GE(kRounding * within.time, within.bound);
    }
  }
}

}  // namespace
}  // namespace pipesim::any_order_test
