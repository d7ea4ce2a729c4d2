#include "sim/execution/walk.h"

#include <gtest/gtest.h>
#include <map>
#include <string>
#include <tuple>

#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "tests/pipeline/problems.h"

namespace pipesim::walk_test {
namespace {

constexpr auto kF = PassKind::kF, kB = PassKind::kB, kW = PassKind::kW, kBW = PassKind::kBW,
               kFB = PassKind::kFB;

std::string deadlock_of(const Program& program) {
  const Problem problem = testing::make_problem(program.shape(), program.placement(), {1, 1, 1, 0});
  try {
    (void)evaluate(program, problem);
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "none";
}

TEST(Walk, NamesWhatEachDeviceWaitsForAndTheCycle) {
  const Program program(
      {2, 1, 1, 1}, Placement::looped(2, 1),
      {{make_pass(kBW, 0), make_pass(kF, 0)}, {make_pass(kF, 0), make_pass(kBW, 0)}});
  EXPECT_EQ(
      deadlock_of(program),
      "deadlock:\n"
      "  device 0 waits before 0BW0 for 1BW0 of device 1\n"
      "  device 1 waits before 1F0 for 0F0 of device 0\n"
      "  cycle: 0BW0 needs 1BW0, which stands behind 1F0 needs 0F0, which stands behind 0BW0");
}

TEST(Walk, NamesOnlyDevicesThatAreStuck) {
  const Program program({2, 1, 1, 1}, Placement::looped(2, 1),
                        {{make_pass(kF, 0), make_pass(kW, 0), make_pass(kB, 0)},
                         {make_pass(kF, 0), make_pass(kBW, 0)}});
  EXPECT_EQ(deadlock_of(program),
            "deadlock:\n"
            "  device 0 waits before 0W0 for 0B0 of device 0\n"
            "  cycle: 0W0 needs 0B0, which stands behind 0W0");
}

TEST(Walk, LeavesTheCycleClearOfDevicesThatOnlyWaitForIt) {
  // Device 1 is stuck on its own; device 0 waits for it.
  const Program program(
      {2, 1, 1, 1}, Placement::looped(2, 1),
      {{make_pass(kF, 0), make_pass(kBW, 0)}, {make_pass(kBW, 0), make_pass(kF, 0)}});
  EXPECT_EQ(deadlock_of(program),
            "deadlock:\n"
            "  device 0 waits before 0BW0 for 1BW0 of device 1\n"
            "  device 1 waits before 1BW0 for 1F0 of device 1\n"
            "  cycle: 1BW0 needs 1F0, which stands behind 1BW0");
}

TEST(Walk, LetsAnOverlappedBlockWaitForBothItsPasses) {
  const Program block({1, 1, 1, 1}, Placement::looped(1, 1), {{make_pass(kFB, 0)}},
                      {{make_pass(kF, 0), make_pass(kBW, 0)}});
  EXPECT_EQ(deadlock_of(block),
            "deadlock:\n"
            "  device 0 waits before 0F0&0BW0 for 0F0 of device 0\n"
            "  cycle: 0F0&0BW0 needs 0F0, which stands behind 0F0&0BW0");
}

TEST(Walk, NeedsSequenceSplitsForwardInOrderAndBackwardInReverse) {
  const Shape shape{1, 1, 1, 2};
  const auto place = Placement::looped(1, 1);
  const Pass f0 = make_pass(kF, 0), f1 = make_pass(kF, 1), b0 = make_pass(kBW, 0),
             b1 = make_pass(kBW, 1);
  EXPECT_EQ(deadlock_of({shape, place, {{f0, f1, b1, b0}}}), "none");
  EXPECT_EQ(deadlock_of({shape, place, {{f1, f0, b1, b0}}}),
            "deadlock:\n"
            "  device 0 waits before 0F1 for 0F0 of device 0\n"
            "  cycle: 0F1 needs 0F0, which stands behind 0F1");
  EXPECT_EQ(deadlock_of({shape, place, {{f0, f1, b0, b1}}}),
            "deadlock:\n"
            "  device 0 waits before 0BW0 for 0BW1 of device 0\n"
            "  cycle: 0BW0 needs 0BW1, which stands behind 0BW0");
}

TEST(Walk, LeavesSplitsOfDifferentMicrobatchesIndependent) {
  const Program program(
      {1, 1, 2, 2}, Placement::looped(1, 1),
      {{make_pass(kF, 2), make_pass(kF, 3), make_pass(kF, 0), make_pass(kF, 1), make_pass(kBW, 1),
        make_pass(kBW, 3), make_pass(kBW, 2), make_pass(kBW, 0)}});
  EXPECT_EQ(deadlock_of(program), "none");
}

TEST(Walk, DoesNotLeadFromOneDirectionIntoTheOther) {
  // The second copy runs on the same devices before the first has sent anything.
  const Program program(
      {2, 2, 2, 1}, Placement::bidirectional(2),
      {{make_pass(kF, 1, 1), make_pass(kBW, 1, 1), make_pass(kF, 0), make_pass(kBW, 0)},
       {make_pass(kF, 1, 1), make_pass(kBW, 1, 1), make_pass(kF, 0), make_pass(kBW, 0)}});
  EXPECT_EQ(deadlock_of(program), "none");
}

Program wrapped(WrapAround wrap_around) {
  const std::vector<Pass> list{make_pass(kF, 0),    make_pass(kF, 1),     make_pass(kF, 0, 1),
                               make_pass(kF, 1, 1), make_pass(kBW, 0, 1), make_pass(kBW, 1, 1),
                               make_pass(kBW, 0),   make_pass(kBW, 1)};
  return {{2, 2, 2, 1}, Placement::looped(2, 2), {list, list}, {}, wrap_around};
}

TEST(Walk, WaitsAtTheWrapAroundBoundaryForEveryMicrobatch) {
  Problem problem = testing::make_problem({2, 2, 2, 1}, {1, 1, 1, 10});
  problem.stages[1].forward = Seconds(5);
  // 1F1 ends at 21 and reaches device 0 at 31; without that wait 2F1 follows 2F0 at 27.
  EXPECT_EQ(evaluate(wrapped(WrapAround::kEvery), problem).makespan, Seconds(83));
  EXPECT_EQ(evaluate(wrapped(WrapAround::kFirstOfGroup), problem).makespan, Seconds(79));
}

TEST(Walk, ForgetsTheWrapAroundOfMicrobatchesThatAreNoMultipleOfTheDevices) {
  // Device 0 runs 2F1 first, which nothing can have sent: only the relaxed rule goes on.
  const std::vector<Pass> zero{make_pass(kF, 1, 1), make_pass(kF, 0),     make_pass(kF, 1),
                               make_pass(kF, 0, 1), make_pass(kBW, 0, 1), make_pass(kBW, 1, 1),
                               make_pass(kBW, 0),   make_pass(kBW, 1)};
  const std::vector<Pass> one{make_pass(kF, 0),    make_pass(kF, 1),     make_pass(kF, 0, 1),
                              make_pass(kF, 1, 1), make_pass(kBW, 0, 1), make_pass(kBW, 1, 1),
                              make_pass(kBW, 0),   make_pass(kBW, 1)};
  const Shape shape{2, 2, 2, 1};
  const auto place = Placement::looped(2, 2);
  EXPECT_EQ(deadlock_of({shape, place, {zero, one}, {}, WrapAround::kFirstOfGroup}), "none");
  EXPECT_EQ(deadlock_of({shape, place, {zero, one}, {}, WrapAround::kEvery}),
            "deadlock:\n"
            "  device 0 waits before 2F1 for 1F1 of device 1\n"
            "  device 1 waits before 1F0 for 0F0 of device 0\n"
            "  cycle: 2F1 needs 1F1, which stands behind 1F0 needs 0F0, which stands behind 2F1");
}

// Remembers when each pass ran (1, 2, ...) and hands every result on unchanged.
struct Recorder {
  using Value = int;
  static constexpr Value kNotYet = -1;
  static constexpr Value kNothing = 0;

  const Program& program;
  int clock = 0;
  std::map<std::tuple<int, PassKind, int>, int> ran = {};

  void note(int device, const Pass& pass) {
    const int vs = program.placement().virtual_stage(device, pass.chunk);
    ran[{vs, pass.kind == kBW ? kB : pass.kind, static_cast<int>(pass.microbatch)}] = clock;
  }
  Value run(int device, const Pass& pass, Value input, Value gradient) {
    ++clock;
    EXPECT_LT(std::max(input, gradient), clock);
    if (pass.kind == kFB) {
      note(device, program.pair(pass).forward);
      note(device, program.pair(pass).backward);
    } else {
      note(device, pass);
    }
    return clock;
  }
  Value deliver(Value result, PassKind, int, int, std::uint32_t) { return result; }

  void expect_before(int vs, PassKind kind, int unit, int when) {
    const auto found = ran.find({vs, kind, unit});
    ASSERT_NE(found, ran.end());
    EXPECT_LT(found->second, when) << vs << to_text(kind) << unit;
  }
};

TEST(Walk, VisitsEveryPassAfterAllThatItWaitsFor) {
  testing::Random random(3);
  for (int i = 0; i < 200; ++i) {
    const auto made = testing::random_case(random);
    const Placement& place = made.program.placement();
    const int splits = made.program.shape().splits;
    Recorder recorder{made.program};
    walk(made.program, recorder);
    EXPECT_EQ(recorder.clock, static_cast<int>(made.program.size()));
    for (const auto& [what, when] : recorder.ran) {
      const auto [vs, kind, unit] = what;
      if (kind == kW) recorder.expect_before(vs, kB, unit, when);
      if (kind == PassKind::kR) recorder.expect_before(vs, kF, unit, when);
      if (kind == kF) {
        if (place.upstream(vs) >= 0) recorder.expect_before(place.upstream(vs), kF, unit, when);
        if (unit % splits > 0) recorder.expect_before(vs, kF, unit - 1, when);
      }
      if (kind == kB) {
        recorder.expect_before(vs, kF, unit, when);
        if (made.program.recomputes(vs)) recorder.expect_before(vs, PassKind::kR, unit, when);
        if (place.downstream(vs) >= 0) recorder.expect_before(place.downstream(vs), kB, unit, when);
        if (unit % splits + 1 < splits) recorder.expect_before(vs, kB, unit + 1, when);
      }
    }
  }
}

}  // namespace
}  // namespace pipesim::walk_test
