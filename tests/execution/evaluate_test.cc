#include "sim/execution/evaluate.h"

#include <gtest/gtest.h>
#include <map>

#include "sim/core/error.h"
#include "tests/pipeline/problems.h"

namespace pipesim::evaluate_test {
namespace {

constexpr auto kF = PassKind::kF, kB = PassKind::kB, kW = PassKind::kW, kBW = PassKind::kBW,
               kFB = PassKind::kFB, kR = PassKind::kR;

Program two_devices() {
  return {{2, 1, 2, 1},
          Placement::looped(2, 1),
          {{make_pass(kF, 0), make_pass(kF, 1), make_pass(kBW, 0), make_pass(kBW, 1)},
           {make_pass(kF, 0), make_pass(kB, 0), make_pass(kF, 1), make_pass(kB, 1),
            make_pass(kW, 0), make_pass(kW, 1)}}};
}

TEST(Evaluate, GivesTheTimesThatAHandGives) {
  const Problem problem = testing::make_problem({2, 1, 2, 1}, {10, 12, 8, 1});
  const Evaluation result = evaluate(two_devices(), problem);
  // Device 1: F0 11-21, B0 -33, F1 -43, B1 -55, W0 -63, W1 -71. Device 0: BW0 34-54, BW1 56-76.
  EXPECT_EQ(result.devices[0].first_start, Seconds(0));
  EXPECT_EQ(result.devices[0].last_end, Seconds(76));
  EXPECT_EQ(result.devices[1].first_start, Seconds(11));
  EXPECT_EQ(result.devices[1].last_end, Seconds(71));
  EXPECT_EQ(result.devices[1].span(), Seconds(60));
  EXPECT_EQ(result.devices[0].busy, Seconds(60));
  EXPECT_EQ(result.makespan, Seconds(76));
  EXPECT_EQ(result.cost, Seconds(76));
  EXPECT_EQ(result.work, Seconds(60));
  EXPECT_DOUBLE_EQ(result.bubble_rate(), 16.0 / 76.0);
}

TEST(Evaluate, GivesUpWhatCostsNoLess) {
  testing::Random random(3);
  int given_up = 0;
  for (int i = 0; i < 200; ++i) {
    const bool both_ways = random.coin();
    const Placement place = both_ways ? Placement::bidirectional(3) : Placement::wave(3, 2);
    const Shape shape{3, 2, 2 * random.integer(1, 3), both_ways ? 1 : random.integer(1, 2)};
    const Problem problem = testing::random_problem(random, shape, place, true);
    const Program program = testing::RandomProgram(random, shape, place, random.coin()).make();
    const Seconds cost = evaluate(program, problem).cost;
    EXPECT_FALSE(evaluate_below(program, problem, cost)) << i;
    const Seconds most = random.real(0.5, 1.5) * cost;
    const auto below = evaluate_below(program, problem, most);
    ASSERT_EQ(below.has_value(), cost < most) << i;
    EXPECT_EQ(below ? below->cost : cost, cost) << i;
    given_up += below ? 0 : 1;
  }
  EXPECT_GT(given_up, 50);
}

TEST(Evaluate, SendsTheGradientOfAFusedBackwardOnlyAtItsEnd) {
  const Problem problem = testing::make_problem({2, 1, 1, 1}, {10, 12, 8, 0});
  const auto makespan = [&](const std::vector<Pass>& last) {
    return evaluate({{2, 1, 1, 1},
                     Placement::looped(2, 1),
                     {{make_pass(kF, 0), make_pass(kBW, 0)}, last}},
                    problem)
        .makespan;
  };
  EXPECT_EQ(makespan({make_pass(kF, 0), make_pass(kBW, 0)}), Seconds(60));
  EXPECT_EQ(makespan({make_pass(kF, 0), make_pass(kB, 0), make_pass(kW, 0)}), Seconds(52));
}

TEST(Evaluate, ChargesEachBoundaryItsOwnTransferBothWays) {
  Problem problem = testing::make_problem({3, 1, 1, 1}, {1, 1, 1, 0});
  problem.stages[0].transfer = Seconds(5);
  problem.stages[1].transfer = Seconds(70);
  const std::vector<Pass> list{make_pass(kF, 0), make_pass(kBW, 0)};
  const Evaluation result =
      evaluate({{3, 1, 1, 1}, Placement::looped(3, 1), {list, list, list}}, problem);
  EXPECT_EQ(result.devices[1].first_start, Seconds(6));
  EXPECT_EQ(result.devices[2].first_start, Seconds(77));
  EXPECT_EQ(result.makespan, Seconds(9 + 2 * 75));
}

TEST(Evaluate, TakesTheWorkOfTheLargestSpanAndOfTheLowestDeviceAmongEqualOnes) {
  Problem problem = testing::make_problem({2, 2, 2, 1}, Placement::bidirectional(2), {1, 1, 1, 0});
  const Program program(
      {2, 2, 2, 1}, problem.placement,
      {{make_pass(kF, 0), make_pass(kF, 1, 1), make_pass(kBW, 1, 1), make_pass(kBW, 0)},
       {make_pass(kF, 1, 1), make_pass(kF, 0), make_pass(kBW, 0), make_pass(kBW, 1, 1)}});
  // Device 0 waits half a second for the other direction, so that its span, 6, is not all work.
  problem.stages[0].forward = Seconds(0.5);
  const Evaluation tie = evaluate(program, problem);
  ASSERT_EQ(tie.devices[0].span(), tie.devices[1].span());
  EXPECT_EQ(tie.devices[1].busy, Seconds(6));
  EXPECT_EQ(tie.work, Seconds(5.5));
  problem.stages[2].backward_weight = Seconds(3);
  const Evaluation larger = evaluate(program, problem);
  EXPECT_EQ(larger.cost, Seconds(8));
  EXPECT_EQ(larger.work, larger.devices[1].busy);
}

TEST(Evaluate, GivesAnOverlappedBlockItsOwnDurationAndSendsBothResultsAtItsEnd) {
  Problem problem = testing::make_problem({2, 1, 2, 1}, {10, 12, 8, 0});
  for (StageCost& cost : problem.stages) cost.overlapped = Seconds(25);
  const Program program({2, 1, 2, 1}, problem.placement,
                        {{make_pass(kF, 0), make_pass(kF, 1), make_pass(kBW, 0), make_pass(kBW, 1)},
                         {make_pass(kF, 0), make_pass(kFB, 0), make_pass(kBW, 1)}},
                        {{make_pass(kF, 1), make_pass(kBW, 0)}});
  const Evaluation result = evaluate(program, problem);
  // Device 1: F0 10-20, block 20-45, BW1 45-65. Device 0: BW0 45-65, BW1 65-85.
  EXPECT_EQ(result.devices[1].last_end, Seconds(65));
  EXPECT_EQ(result.devices[1].busy, Seconds(55));
  EXPECT_EQ(result.makespan, Seconds(85));
  EXPECT_EQ(result.devices[1].peak_in_flight, 2);
}

TEST(Evaluate, ChargesABlockOfTwoStagesWithTheCostsOfBoth) {
  const auto stage = [](double f, double b, double w, double block) {
    StageCost cost;
    cost.forward = Seconds(f);
    cost.backward_input = Seconds(b);
    cost.backward_weight = Seconds(w);
    cost.overlapped = Seconds(block);
    return cost;
  };
  const StageCost small = stage(40, 20, 20, 64);   // 0.8 of its passes
  const StageCost large = stage(50, 60, 60, 153);  // 0.9
  EXPECT_EQ(block_seconds(small, small), Seconds(64));
  EXPECT_EQ(block_seconds(large, large), Seconds(153));
  EXPECT_DOUBLE_EQ(block_seconds(small, large)->value(), 0.8 * 40 + 0.9 * 120);
  EXPECT_DOUBLE_EQ(block_seconds(large, small)->value(), 0.9 * 50 + 0.8 * 40);
  // A block that hides all of F hides no part of another stage's longer BW.
  const StageCost hides = stage(10, 10, 10, 20);
  const StageCost long_one = stage(30, 30, 30, 60);
  EXPECT_EQ(block_seconds(hides, long_one), Seconds(60));
  EXPECT_DOUBLE_EQ(block_seconds(long_one, hides)->value(), 100.0 / 3);
  StageCost alone = small;
  alone.overlapped.reset();
  EXPECT_EQ(block_seconds(alone, large), std::nullopt);
  EXPECT_EQ(block_seconds(large, alone), std::nullopt);

  Problem problem = testing::make_problem({1, 2, 2, 1}, Placement::vee(1));
  problem.stages = {small, large};
  const Program program(
      {1, 2, 2, 1}, problem.placement,
      {{make_pass(kF, 0), make_pass(kF, 0, 1), make_pass(kFB, 0), make_pass(kF, 1, 1),
        make_pass(kBW, 1, 1), make_pass(kBW, 0), make_pass(kBW, 1)}},
      {{make_pass(kF, 1), make_pass(kBW, 0, 1)}});
  EXPECT_DOUBLE_EQ(evaluate(program, problem).makespan.value(),
                   40 + 50 + (0.8 * 40 + 0.9 * 120) + 50 + 120 + 40 + 40);
}

// F 10, B 12, W 8 and their block 24, 0.8 of them: a part of the backward hides as large a share.
TEST(Evaluate, ChargesABlockWithPartOfABackwardByTheShareOfTheWhole) {
  Problem problem = testing::make_problem({1, 1, 3, 1}, {10, 12, 8, 0});
  const Program program(
      {1, 1, 3, 1}, problem.placement,
      {{make_pass(kF, 0), make_pass(kFB, 0), make_pass(kFB, 1), make_pass(kBW, 1),
        make_pass(kBW, 2)}},
      {{make_pass(kF, 1), make_pass(kB, 0)}, {make_pass(kF, 2), make_pass(kW, 0)}});
  const auto seconds = [&](double whole, std::uint32_t pair) {
    problem.stages[0].overlapped = Seconds(whole);
    return pass_seconds(problem, program, 0, make_pass(kFB, static_cast<int>(pair))).value();
  };
  EXPECT_EQ(seconds(30, 0), 22);
  EXPECT_EQ(seconds(30, 1), 18);
  EXPECT_DOUBLE_EQ(seconds(24, 0), 0.8 * 22);
  EXPECT_DOUBLE_EQ(seconds(24, 1), 0.8 * 18);
  EXPECT_EQ(seconds(15, 0), 12) << "no shorter than B";
  EXPECT_EQ(seconds(12, 1), 10) << "no shorter than F";

  problem.stages[0].overlapped = Seconds(30);
  problem.stages[0].activation = Bytes(10);
  problem.stages[0].weight_stash = Bytes(4);
  const Evaluation result = evaluate(program, problem);
  EXPECT_EQ(result.makespan, Seconds(90)) << "one device, blocks as long as their passes";
  // Bytes that B leaves count until the block with its W has ended: 10 and 10, then 4, 10 and 10.
  EXPECT_EQ(result.devices[0].peak_activation, Bytes(24));
  EXPECT_EQ(result.devices[0].peak_in_flight, 3);
}

TEST(Evaluate, RefusesAnOverlappedBlockWithoutACost) {
  const Problem problem = testing::make_problem({1, 1, 2, 1});
  const Program program({1, 1, 2, 1}, problem.placement,
                        {{make_pass(kF, 0), make_pass(kFB, 0), make_pass(kBW, 1)}},
                        {{make_pass(kF, 1), make_pass(kBW, 0)}});
  EXPECT_THROW((void)evaluate(program, problem), LogicError);
}

TEST(Evaluate, CountsActivationsFromTheStartOfFToTheEndOfB) {
  Problem problem = testing::make_problem({1, 1, 2, 1});
  const Program program({1, 1, 2, 1}, problem.placement,
                        {{make_pass(kF, 0), make_pass(kB, 0), make_pass(kF, 1), make_pass(kB, 1),
                          make_pass(kW, 0), make_pass(kW, 1)}});
  const auto peak = [&](double activation, double stash) {
    problem.stages[0].activation = Bytes(activation);
    problem.stages[0].weight_stash = Bytes(stash);
    return evaluate(program, problem).devices[0].peak_activation.value();
  };
  EXPECT_EQ(peak(10, 0), 10) << "B frees all";
  EXPECT_EQ(peak(10, 10), 20) << "B frees nothing";
  EXPECT_EQ(peak(10, 4), 14) << "W still needs 4 of the first";
  EXPECT_EQ(evaluate(program, problem).devices[0].peak_in_flight, 2);
}

TEST(Evaluate, HoldsBothHalvesOfAnOverlappedBlockForItsWholeLength) {
  Problem problem = testing::make_problem({1, 2, 1, 1});
  problem.stages[0].overlapped = problem.stages[1].overlapped = Seconds(1);
  problem.shape.microbatches = 2;
  const Program program(
      {1, 2, 2, 1}, problem.placement,
      {{make_pass(kF, 0), make_pass(kF, 0, 1), make_pass(kBW, 0, 1), make_pass(kFB, 0),
        make_pass(kF, 1, 1), make_pass(kBW, 1, 1), make_pass(kBW, 1)}},
      {{make_pass(kF, 1), make_pass(kBW, 0)}});
  problem.stages[0].activation = Bytes(100);
  problem.stages[0].weight_stash = Bytes(0);
  problem.stages[1].activation = Bytes(7);
  problem.stages[1].weight_stash = Bytes(0);
  EXPECT_EQ(evaluate(program, problem).devices[0].peak_activation, Bytes(200));
}

TEST(Evaluate, RunsARecomputedForwardWhileTheGradientIsOnItsWay) {
  Problem problem = testing::make_problem({2, 1, 1, 1}, {10, 12, 8, 1});
  const Program program({2, 1, 1, 1}, problem.placement,
                        {{make_pass(kF, 0), make_pass(kR, 0), make_pass(kBW, 0)},
                         {make_pass(kF, 0), make_pass(kBW, 0)}});
  // Device 1: F0 11-21, BW0 -41. Device 0: R0 10-20, BW0 42-62.
  const Evaluation hidden = evaluate(program, problem);
  EXPECT_EQ(hidden.makespan, Seconds(62));
  EXPECT_EQ(hidden.devices[0].busy, Seconds(40)) << "R is as long as F and counts as busy";
  problem.stages[0].recompute = Seconds(35);
  EXPECT_EQ(evaluate(program, problem).makespan, Seconds(65));
  EXPECT_EQ(evaluate(program, problem).devices[0].busy, Seconds(65));
}

TEST(Evaluate, HoldsOnlyTheCheckpointUntilTheForwardIsRecomputed) {
  Problem problem = testing::make_problem({1, 1, 2, 1});
  const Program program({1, 1, 2, 1}, problem.placement,
                        {{make_pass(kF, 0), make_pass(kF, 1), make_pass(kR, 0), make_pass(kB, 0),
                          make_pass(kR, 1), make_pass(kBW, 1), make_pass(kW, 0)}});
  const auto peak = [&](double activation, double stash, double checkpoint) {
    problem.stages[0].activation = Bytes(activation);
    problem.stages[0].weight_stash = Bytes(stash);
    problem.stages[0].checkpoint = Bytes(checkpoint);
    return evaluate(program, problem).devices[0].peak_activation.value();
  };
  EXPECT_EQ(peak(10, 0, 0), 10) << "one at a time";
  EXPECT_EQ(peak(10, 0, 3), 13) << "one and the other's checkpoint";
  EXPECT_EQ(peak(10, 6, 3), 16) << "one and what W needs of the other";
  EXPECT_EQ(peak(10, 10, 10), 20) << "the input is all there is";
  EXPECT_EQ(evaluate(program, problem).devices[0].peak_in_flight, 2);
}

// The same numbers the slow way: end times are raised until no pass wants a later one.
class Relaxation {
 public:
  explicit Relaxation(const testing::RandomCase& made)
      : program_(made.program), problem_(made.problem), place_(made.program.placement()) {
    bool changed = true;
    while (changed) {
      changed = false;
      for (int device = 0; device < place_.devices(); ++device) changed |= raise(device);
    }
  }
  [[nodiscard]] double last_end(int device) const { return end_.at({device, last(device)}); }
  [[nodiscard]] double busy(int device) const { return busy_.at(device); }

 private:
  [[nodiscard]] size_t last(int device) const { return program_.passes(device).size() - 1; }

  bool raise(int device) {
    bool changed = false;
    double clock = 0;
    double busy = 0;
    for (size_t i = 0; i <= last(device); ++i) {
      const Pass& pass = program_.passes(device)[i];
      const double seconds = pass_seconds(problem_, program_, device, pass).value();
      const double end = std::max(clock, arrival(device, pass)) + seconds;
      changed |= end_[{device, i}] != end;
      clock = end_[{device, i}] = end;
      busy += seconds;
      publish(device, pass, end);
    }
    busy_[device] = busy;
    return changed;
  }
  double arrival(int device, const Pass& pass) {
    if (pass.kind == kFB) {
      return std::max(arrival(device, program_.pair(pass).forward),
                      arrival(device, program_.pair(pass).backward));
    }
    const int vs = place_.virtual_stage(device, pass.chunk);
    const int unit = static_cast<int>(pass.microbatch);
    if (pass.kind == kW || pass.kind == kR) return 0;
    const bool forward = pass.kind == kF;
    const int from = forward ? place_.upstream(vs) : place_.downstream(vs);
    if (from < 0) return 0;
    const int boundary = std::min(from, vs);
    return ended_[{forward, from, unit}] + problem_.stage(boundary).transfer.value();
  }
  void publish(int device, const Pass& pass, double end) {
    if (pass.kind == kFB) {
      publish(device, program_.pair(pass).forward, end);
      publish(device, program_.pair(pass).backward, end);
    } else if (pass.kind != kW && pass.kind != kR) {
      const int vs = place_.virtual_stage(device, pass.chunk);
      ended_[{pass.kind == kF, vs, static_cast<int>(pass.microbatch)}] = end;
    }
  }

  const Program& program_;
  const Problem& problem_;
  const Placement& place_;
  std::map<std::pair<int, size_t>, double> end_;
  std::map<std::tuple<bool, int, int>, double> ended_;
  std::map<int, double> busy_;
};

TEST(Evaluate, EqualsAFixedPointOnRandomPrograms) {
  testing::Random random(11);
  for (int i = 0; i < 300; ++i) {
    const auto made = testing::random_case(random);
    const Evaluation result = evaluate(made.program, made.problem);
    const Relaxation slow(made);
    for (int device = 0; device < made.program.shape().devices; ++device) {
      const DeviceEvaluation& fast = result.devices[device];
      EXPECT_EQ(fast.last_end.value(), slow.last_end(device))
          << "case " << i << " device " << device;
      EXPECT_EQ(fast.busy.value(), slow.busy(device)) << "case " << i << " device " << device;
    }
  }
}

}  // namespace
}  // namespace pipesim::evaluate_test
