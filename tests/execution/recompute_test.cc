#include <algorithm>
#include <gtest/gtest.h>

#include "sim/execution/evaluate.h"
#include "sim/execution/walk.h"
#include "sim/execution/with_recompute.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::recompute_test {
namespace {

std::vector<std::string> texts(const Program& program, int device) {
  std::vector<std::string> all;
  for (const Pass& pass : program.passes(device)) all.push_back(program.text(device, pass));
  return all;
}

TEST(Recompute, StandsRightBeforeTheBackwardOfItsMicrobatch) {
  const Problem problem = testing::make_problem({2, 1, 2, 1});
  const Program fused = with_recompute(find_schedule("1f1b")->plan(problem), 1);
  EXPECT_EQ(texts(fused, 0),
            (std::vector<std::string>{"0F0", "0F1", "0R0", "0BW0", "0R1", "0BW1"}));
  const Program split = with_recompute(find_schedule("zb-h1")->plan(problem), 1);
  EXPECT_EQ(texts(split, 1),
            (std::vector<std::string>{"1F0", "1R0", "1B0", "1F1", "1R1", "1B1", "1W0", "1W1"}));
}

TEST(Recompute, StandsBeforeTheOverlappedBlockThatHoldsTheBackward) {
  const Shape shape{1, 1, 2, 1};
  const Program plain(
      shape, Placement::looped(1, 1),
      {{make_pass(PassKind::kF, 0), make_pass(PassKind::kFB, 0), make_pass(PassKind::kBW, 1)}},
      {{make_pass(PassKind::kF, 1), make_pass(PassKind::kBW, 0)}});
  EXPECT_EQ(texts(with_recompute(plain, 1), 0),
            (std::vector<std::string>{"0F0", "0R0", "0F1&0BW0", "0R1", "0BW1"}));
}

TEST(Recompute, StandsBeforeTheBlockOfTheInputGradientAndNotOfTheWeightGradient) {
  const Shape shape{1, 1, 3, 1};
  const Program plain(
      shape, Placement::looped(1, 1),
      {{make_pass(PassKind::kF, 0), make_pass(PassKind::kFB, 0), make_pass(PassKind::kFB, 1),
        make_pass(PassKind::kBW, 1), make_pass(PassKind::kBW, 2)}},
      {{make_pass(PassKind::kF, 1), make_pass(PassKind::kB, 0)},
       {make_pass(PassKind::kF, 2), make_pass(PassKind::kW, 0)}});
  EXPECT_EQ(
      texts(with_recompute(plain, 1), 0),
      (std::vector<std::string>{"0F0", "0R0", "0F1&0B0", "0F2&0W0", "0R1", "0BW1", "0R2", "0BW2"}));
}

TEST(Recompute, TakesTheFirstChunksOfEveryDeviceAndLeavesTheRestAlone) {
  const Problem problem = testing::make_problem({2, 2, 2, 1});
  const Program plain = find_schedule("interleaved-1f1b")->plan(problem);
  const Program some = with_recompute(plain, 1);
  EXPECT_TRUE(some.recomputes(0) && some.recomputes(1));
  EXPECT_FALSE(some.recomputes(2) || some.recomputes(3));
  EXPECT_EQ(some.size(), plain.size() + 4);
  EXPECT_EQ(with_recompute(plain, 0).size(), plain.size());
  EXPECT_EQ(with_recompute(plain, 9).size(), plain.size() + 8);
  EXPECT_EQ(texts(with_recompute(some, 2), 0), texts(with_recompute(plain, 2), 0))
      << "what recomputes already is left as it is";
}

TEST(Recompute, KeepsTheWrapAroundOfTheProgram) {
  const Program plain({1, 1, 1, 1}, Placement::looped(1, 1),
                      {{make_pass(PassKind::kF, 0), make_pass(PassKind::kBW, 0)}}, {},
                      WrapAround::kFirstOfGroup);
  EXPECT_EQ(with_recompute(plain, 1).wrap_around(), WrapAround::kFirstOfGroup);
}

TEST(Recompute, AddsItsSecondsToTheWorkAndTakesNoMoreMemoryOnAnyRandomProgram) {
  testing::Random random(21);
  for (int i = 0; i < 200; ++i) {
    const auto made = testing::random_case(random);
    const Program recomputed = with_recompute(made.program, made.program.shape().chunks);
    const Evaluation before = evaluate(made.program, made.problem);
    const Evaluation after = evaluate(recomputed, made.problem);
    const Placement& place = made.program.placement();
    for (int device = 0; device < place.devices(); ++device) {
      double added = 0;
      for (const Pass& pass : recomputed.passes(device)) {
        const bool counted = pass.kind == PassKind::kR &&
                             !made.program.recomputes(place.virtual_stage(device, pass.chunk));
        if (!counted) continue;
        added += pass_seconds(made.problem, recomputed, device, pass).value();
      }
      const DeviceEvaluation& with = after.devices[device];
      const DeviceEvaluation& without = before.devices[device];
      EXPECT_NEAR(with.busy.value(), without.busy.value() + added, 1e-9) << "case " << i;
      EXPECT_LE(with.peak_activation, without.peak_activation) << "case " << i;
      EXPECT_EQ(with.peak_in_flight, without.peak_in_flight) << "case " << i;
    }
  }
}

}  // namespace
}  // namespace pipesim::recompute_test
