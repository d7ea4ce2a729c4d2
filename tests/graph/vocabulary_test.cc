// A sharded vocabulary: evaluation and task graph agree, claims hold, deadlocks are named.
#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/engine/engine.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/walk.h"
#include "sim/execution/with_recompute.h"
#include "sim/graph/build.h"
#include "sim/metrics/analyze.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::vocabulary_test {
namespace {

constexpr std::array kSharded{VocabularyPlacement::kVocab1, VocabularyPlacement::kVocab2,
                              VocabularyPlacement::kInterlaced};

Problem make(const Shape& shape, VocabularyPlacement placement, const testing::Times& times = {}) {
  Problem problem = testing::make_problem(shape, times);
  problem.vocabulary = placement;
  problem.vocabulary_costs.resize(shape.devices);
  return problem;
}

Problem random_costs(testing::Random& random, VocabularyPlacement placement) {
  const Shape shape{random.integer(1, 6), 1, random.integer(1, 14), 1};
  Problem problem =
      testing::random_problem(random, shape, Placement::looped(shape.devices, 1), true);
  problem.vocabulary = placement;
  const auto seconds = [&random] { return Seconds(random.integer(0, 9)); };
  for (int d = 0; d < shape.devices; ++d) {
    problem.vocabulary_costs.push_back(
        {seconds(), seconds(), seconds(), seconds(), Bytes(random.integer(0, 5))});
  }
  for (Seconds& each : problem.barriers) each = seconds();
  problem.barriers[Barrier::kRendezvous] = Seconds(0);
  return problem;
}

TEST(Vocabulary, IsTheSameInEvaluationAndInTheTaskGraph) {
  testing::Random random(11);
  for (int i = 0; i < 300; ++i) {
    const Problem problem = random_costs(random, kSharded[i % 3]);
    Program plain = find_schedule("1f1b")->plan(problem);
    const auto program =
        std::make_shared<const Program>(i % 2 == 0 ? std::move(plain) : with_recompute(plain, 1));
    const Evaluation result = evaluate(*program, problem);
    const TaskGraph graph = build_task_graph(program, problem);
    const Timeline timeline = make_replay_engine()->run(graph, {}, {});
    const Report report = analyze(graph, timeline);
    EXPECT_EQ(report.makespan, result.makespan);
    EXPECT_EQ(report.cost, result.cost);
    for (size_t d = 0; d < result.devices.size(); ++d) {
      EXPECT_EQ(report.devices[d].busy, result.devices[d].busy);
      EXPECT_EQ(report.devices[d].span, result.devices[d].span());
      EXPECT_EQ(report.devices[d].peak_activation, result.devices[d].peak_activation);
      Seconds idle;
      for (const Seconds each : report.devices[d].idle_by_cause) idle += each;
      EXPECT_NEAR(idle.value(), report.devices[d].idle.value(), 1e-9);
    }
  }
}

TEST(Vocabulary, OrdersOf1F1BKeepTheirClaimsForEveryNumberOfMicrobatches) {
  const Schedule& schedule = *find_schedule("1f1b");
  ASSERT_EQ(schedule.vocabulary.size(), kSharded.size());
  for (const VocabularySupport& support : schedule.vocabulary) {
    for (const testing::Times& times : {testing::Times{1, 1, 1, 0}, testing::Times{10, 12, 8, 0},
                                        testing::Times{10, 4, 3, 0}, testing::Times{3, 2, 1, 4}}) {
      for (int p = 1; p <= 16; ++p) {
        for (const int m : {1, 2, p, p + 1, 2 * p, 4 * p}) {
          SCOPED_TRACE(::testing::Message()
                       << to_text(support.placement) << " p " << p << " m " << m);
          const Problem problem = make({p, 1, m, 1}, support.placement, times);
          const Evaluation result = evaluate(schedule.plan(problem), problem);
          if (support.claims.bubble.holds(problem)) {
            EXPECT_NEAR((result.cost - result.work).value(),
                        support.claims.bubble.bubble(problem).value(), 1e-9);
          }
          for (int d = 0; d < p; ++d) {
            EXPECT_EQ(result.devices[d].peak_in_flight, support.claims.peak.in_flight(problem, d));
          }
        }
      }
    }
  }
}

// One device, one microbatch, in this order.
std::string deadlock_of(VocabularyPlacement placement, const std::vector<PassKind>& kinds) {
  std::vector<Pass> list;
  for (const PassKind kind : kinds) list.push_back(make_pass(kind, 0));
  try {
    check_executable(
        {{1, 1, 1, 1}, Placement::looped(1, 1), {list}, {}, WrapAround::kEvery, placement});
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "";
}

TEST(Vocabulary, NamesWhatADeadlockWaitsFor) {
  constexpr auto kF = PassKind::kF, kBW = PassKind::kBW, kS = PassKind::kS, kT = PassKind::kT,
                 kIF = PassKind::kIF, kIB = PassKind::kIB;
  EXPECT_EQ(deadlock_of(VocabularyPlacement::kVocab2, {kIF, kF, kS, kBW, kT, kIB}), "");
  const std::string text = deadlock_of(VocabularyPlacement::kVocab1, {kIF, kF, kS, kBW, kT, kIB});
  EXPECT_NE(text.find("device 0 waits before 0BW0 for 0T0 of device 0"), std::string::npos) << text;
  const std::string first =
      deadlock_of(VocabularyPlacement::kInterlaced, {kF, kIF, kS, kT, kBW, kIB});
  EXPECT_NE(first.find("device 0 waits before 0F0 for 0IF0 of device 0"), std::string::npos)
      << first;
}

TEST(Vocabulary, NamesTheDeviceThatDoesNotComeToAnInterlacedPass) {
  const auto list = [](PassKind a, PassKind b) {
    return std::vector<Pass>{
        make_pass(PassKind::kIF, 0), make_pass(PassKind::kF, 0), make_pass(a, 0), make_pass(b, 0),
        make_pass(PassKind::kBW, 0), make_pass(PassKind::kIB, 0)};
  };
  try {
    check_executable({{2, 1, 1, 1},
                      Placement::looped(2, 1),
                      {list(PassKind::kS, PassKind::kT), list(PassKind::kT, PassKind::kS)},
                      {},
                      WrapAround::kEvery,
                      VocabularyPlacement::kInterlaced});
    ADD_FAILURE() << "no deadlock";
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("device 0 waits before 0S0 for 1S0 of device 1"),
              std::string::npos)
        << error.what();
  }
}

TEST(Vocabulary, IsRefusedByProgramsAndSchedulesThatHaveNoPassesForIt) {
  const Problem problem = make({2, 1, 4, 1}, VocabularyPlacement::kVocab1);
  const auto refusal = find_schedule("gpipe")->refusal(problem);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason, "gpipe has no order for the passes of vocabulary placement vocab-1");
  const Program program = find_schedule("1f1b")->plan(problem);
  PassLists lists = program.lists();
  const Shape& shape = problem.shape;
  EXPECT_TRUE(Program::find_fault(shape, problem.placement, lists, {}).has_value());
  lists[1].pop_back();
  const auto fault = Program::find_fault(shape, problem.placement, lists, {}, problem.vocabulary);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->message, "1IB3 is missing");
}

}  // namespace
}  // namespace pipesim::vocabulary_test
