#include "sim/planning/list_schedule.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::list_schedule_test {
namespace {

constexpr auto kF = PassKind::kF, kB = PassKind::kB, kW = PassKind::kW, kBW = PassKind::kBW;

std::optional<NextPass> gpipe(const Turn& turn) {
  return NextPass{turn.forwards_left() > 0 ? kF : kBW};
}

std::optional<NextPass> one_f_one_b(const Turn& turn) {
  const int warm_up = turn.problem().shape.devices - turn.device();
  const bool forward = turn.forwards_left() > 0 && turn.in_flight() < warm_up;
  return NextPass{forward ? kF : kBW};
}

// Warm-up of p-1-d forwards; then F, B and, once a device owes `device` of them, W in turn.
std::optional<NextPass> zb_h1(const Turn& turn) {
  const int f = turn.ran(kF);
  const int b = turn.ran(kB);
  const int ahead = turn.problem().shape.devices - turn.device();
  if (b > 0 && b - 1 - turn.ran(kW) >= turn.device()) return NextPass{kW};
  if (turn.forwards_left() > 0 && f - b < ahead) return NextPass{kF};
  return NextPass{b < turn.problem().shape.microbatches ? kB : kW};
}

std::optional<NextPass> backward_first(const Turn& turn) { return turn.first_ready({kB, kF, kW}); }

void expect_the_order_of(const char* schedule, const NextPassRule& rule) {
  testing::Random random(7);
  for (int p = 1; p <= 6; ++p) {
    for (const int m : {1, 2, p, p + 1, 3 * p}) {
      const Shape shape{p, 1, m, 1};
      const Problem problem =
          testing::random_problem(random, shape, Placement::looped(p, 1), random.coin());
      const Program ours = list_schedule(problem, rule);
      const Program theirs = find_schedule(schedule)->plan(problem);
      for (int device = 0; device < p; ++device) {
        EXPECT_TRUE(std::ranges::equal(ours.passes(device), theirs.passes(device)))
            << schedule << " p " << p << " m " << m << " device " << device;
      }
    }
  }
}

TEST(ListSchedule, KeepsTheOrderOfARuleThatWaitsWhateverTheTimes) {
  expect_the_order_of("gpipe", gpipe);
  expect_the_order_of("1f1b", one_f_one_b);
  expect_the_order_of("zb-h1", zb_h1);
}

Placement some_placement(testing::Random& random, int devices) {
  const int kind = random.integer(0, 2);
  return kind == 0   ? Placement::looped(devices, random.integer(1, 3))
         : kind == 1 ? Placement::vee(devices)
                     : Placement::bidirectional(devices);
}

// Programs are complete by construction; `evaluate` throws where one cannot be executed.
TEST(ListSchedule, MakesExecutableProgramsOfAnyPlacementSplitsAndTimes) {
  testing::Random random(1);
  for (int each = 0; each < 300; ++each) {
    const int p = random.integer(1, 6);
    const Placement place = some_placement(random, p);
    const Shape shape{p, place.chunks(), 2 * random.integer(1, 5), random.integer(1, 3)};
    const Problem problem = for_planning(testing::random_problem(random, shape, place, true));
    EXPECT_GT(evaluate(list_schedule(problem, backward_first), problem).cost, Seconds(0));
  }
}

Bytes largest_microbatch_of_all_chunks(const Problem& problem) {
  Bytes largest;
  for (int d = 0; d < problem.shape.devices; ++d) {
    Bytes whole;
    for (int c = 0; c < problem.shape.chunks; ++c) {
      whole +=
          problem.shape.splits * problem.stage(problem.placement.virtual_stage(d, c)).activation;
    }
    largest = std::max(largest, whole);
  }
  return largest;
}

TEST(ListSchedule, KeepsEveryLimitThatOneMicrobatchKeeps) {
  testing::Random random(2);
  for (int each = 0; each < 500; ++each) {
    const int p = random.integer(1, 6);
    const Placement place = some_placement(random, p);
    const Shape shape{p, place.chunks(), 2 * random.integer(1, 5), random.integer(1, 3)};
    Problem problem = for_planning(testing::random_problem(random, shape, place, false));
    problem.activation_limit = random.real(1, 3) * largest_microbatch_of_all_chunks(problem);
    const Evaluation result = evaluate(list_schedule(problem, backward_first), problem);
    EXPECT_LE(result.peak_activation().value(), problem.activation_limit->value() * (1 + 1e-9));
  }
}

// A pass that the rule sees as ready is ready: executed, no pass starts later than planned.
TEST(ListSchedule, FollowsTheTimesThatEvaluationFinds) {
  testing::Random random(3);
  for (int each = 0; each < 100; ++each) {
    const int p = random.integer(1, 5);
    const Placement place = some_placement(random, p);
    const Problem problem = for_planning(testing::random_problem(
        random, {p, place.chunks(), 2 * random.integer(1, 4), 1}, place, true));
    double last = 0;
    const Program program = list_schedule(problem, [&last](const Turn& turn) {
      last = std::max(last, turn.now().value());
      return turn.first_ready({PassKind::kB, PassKind::kF, PassKind::kW});
    });
    EXPECT_EQ(evaluate(program, problem).makespan.value(), last);
  }
}

std::string error_of(const Problem& problem, const NextPassRule& rule) {
  try {
    (void)list_schedule(problem, rule);
  } catch (const LogicError& error) {
    return error.what();
  }
  return "";
}

TEST(ListSchedule, SaysWhatEveryDeviceWaitsForWhereNothingRunsAnyMore) {
  const Problem problem = testing::make_problem({2, 1, 2, 1});
  const auto backward_before_forward = [](const Turn& turn) -> std::optional<NextPass> {
    if (turn.device() == 1) return std::nullopt;
    return NextPass{turn.ran(kF) == 0 ? kF : kB};
  };
  EXPECT_EQ(error_of(problem, backward_before_forward),
            "list_schedule: every device waits, and passes are left; expected a rule that names a "
            "ready pass on one of them\n"
            "  device 0: the rule names 0B0, which waits for stage 1 on device 1; ready are 0F1\n"
            "  device 1: the rule names no pass; ready are 1F0");
}

TEST(ListSchedule, SaysWhichForwardLacksMemory) {
  Problem problem = testing::make_problem({1, 1, 2, 1});
  problem.activation_limit = Bytes(1);
  const std::string error = error_of(problem, gpipe);
  EXPECT_NE(error.find("device 0: the rule names 0F1, which lacks memory"), std::string::npos)
      << error;
  EXPECT_NE(error.find("ready are 0B0"), std::string::npos) << error;
}

TEST(ListSchedule, RefusesWhatItCannotPlan) {
  Problem problem = testing::make_problem({2, 1, 2, 1});
  problem.activation_limit = Bytes(0.5);
  EXPECT_NE(error_of(problem, gpipe).find("keeps on device 0"), std::string::npos);
  problem.activation_limit = std::nullopt;
  const auto wrong = [](const Turn&) { return NextPass{PassKind::kF, 1}; };
  EXPECT_EQ(error_of(problem, wrong),
            "list_schedule: the rule names F of chunk 1 on device 0; expected F, B, W or BW of a "
            "chunk from 0 to 0");
  problem.vocabulary = VocabularyPlacement::kVocab1;
  EXPECT_EQ(error_of(problem, gpipe), "list_schedule places no passes of a sharded vocabulary");
}

}  // namespace
}  // namespace pipesim::list_schedule_test
