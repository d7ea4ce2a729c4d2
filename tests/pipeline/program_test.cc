#include "sim/pipeline/program.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "sim/core/error.h"
#include "tests/pipeline/problems.h"

namespace pipesim::program_test {
namespace {

constexpr auto kF = PassKind::kF, kB = PassKind::kB, kW = PassKind::kW, kBW = PassKind::kBW,
               kFB = PassKind::kFB, kR = PassKind::kR;

// One device, one chunk, two microbatches unless said otherwise.
std::optional<ProgramFault> fault_of(const std::vector<Pass>& list,
                                     const Shape& shape = {1, 1, 2, 1},
                                     const std::vector<OverlappedPair>& pairs = {}) {
  return Program::find_fault(shape, Placement::looped(shape.devices, shape.chunks), {list}, pairs);
}

TEST(Program, AcceptsBackwardsWholeAndSplit) {
  EXPECT_FALSE(fault_of(
      {make_pass(kF, 0), make_pass(kBW, 0), make_pass(kF, 1), make_pass(kB, 1), make_pass(kW, 1)}));
}

TEST(Program, RefusesAPassThatIsThereTwiceAndSaysWhere) {
  const auto fault = fault_of({make_pass(kF, 0), make_pass(kF, 1), make_pass(kF, 0)});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->message, "0F0 is there twice");
  EXPECT_EQ(fault->device, 0);
  EXPECT_EQ(fault->position, 2);
}

TEST(Program, RefusesAWeightGradientThatIsPartOfABackwardToo) {
  const auto fault = fault_of(
      {make_pass(kF, 0), make_pass(kBW, 0), make_pass(kF, 1), make_pass(kBW, 1), make_pass(kW, 1)});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->message, "0W1 is there twice");
  EXPECT_EQ(fault->position, 4);
}

TEST(Program, NamesTheFirstMissingPass) {
  const auto message = [](const std::vector<Pass>& list) {
    const auto fault = fault_of(list, {1, 1, 1, 1});
    EXPECT_TRUE(fault && fault->position == -1);
    return fault ? fault->message : "";
  };
  EXPECT_EQ(message({make_pass(kBW, 0)}), "0F0 is missing");
  EXPECT_EQ(message({make_pass(kF, 0)}), "0BW0, or 0B0 and 0W0, is missing");
  EXPECT_EQ(message({make_pass(kF, 0), make_pass(kW, 0)}), "0W0 is there, but 0B0 is missing");
  EXPECT_EQ(message({make_pass(kF, 0), make_pass(kB, 0)}), "0B0 is there, but 0W0 is missing");
}

TEST(Program, NamesTheDeviceOfAMissingPass) {
  const std::vector<Pass> complete{make_pass(kF, 0), make_pass(kBW, 0)};
  const auto fault = Program::find_fault({2, 1, 1, 1}, Placement::looped(2, 1), {complete, {}}, {});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->device, 1);
  EXPECT_EQ(fault->message, "1F0 is missing");
}

TEST(Program, RefusesChunksAndMicrobatchesThatAreNotThere) {
  EXPECT_EQ(fault_of({make_pass(kF, 0, 1)})->message, "device 0 has no chunk 1");
  EXPECT_EQ(fault_of({make_pass(kF, 2)})->message,
            "microbatch 2 does not travel through stage 0 (it has 0 to 1)");
  const auto both = Program::find_fault({2, 2, 4, 1}, Placement::bidirectional(2),
                                        {{make_pass(kF, 0, 1)}, {}}, {});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->message, "microbatch 0 does not travel through stage 3 (it has 2 to 3)");
}

TEST(Program, RefusesAWrongNumberOfLists) {
  const auto fault = Program::find_fault({2, 1, 1, 1}, Placement::looped(2, 1), {{}}, {});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->message, "1 lists for 2 devices");
}

TEST(Program, ThrowsWhatItFound) {
  try {
    const Program program({1, 1, 1, 1}, Placement::looped(1, 1), {{make_pass(kF, 0)}});
    FAIL() << "a forward alone is no program";
  } catch (const LogicError& error) {
    EXPECT_STREQ(error.what(),
                 "not a program: device 0: 0BW0, or 0B0 and 0W0, is missing; expected F "
                 "once and either BW or B and W once on every stage for each of 1 microbatches");
  }
}

TEST(Program, CountsBothPassesOfAnOverlappedBlock) {
  const std::vector<Pass> list{make_pass(kF, 0), make_pass(kFB, 0), make_pass(kBW, 1)};
  EXPECT_FALSE(fault_of(list, {1, 1, 2, 1}, {{make_pass(kF, 1), make_pass(kBW, 0)}}));
  EXPECT_EQ(fault_of(list, {1, 1, 2, 1}, {{make_pass(kF, 0), make_pass(kBW, 0)}})->message,
            "0F0 is there twice");
}

TEST(Program, RefusesAnOverlappedBlockThatIsNoForwardWithABackward) {
  const std::vector<Pass> block{make_pass(kFB, 0)};
  EXPECT_EQ(fault_of(block)->message, "an overlapped block has no pair");
  for (const PassKind beside : {kF, PassKind::kR, kFB}) {
    EXPECT_EQ(fault_of(block, {1, 1, 2, 1}, {{make_pass(kF, 1), make_pass(beside, 0)}})->message,
              "an overlapped block is an F and a BW, B or W");
  }
  EXPECT_EQ(fault_of(block, {1, 1, 2, 1}, {{make_pass(kB, 1), make_pass(kBW, 0)}})->message,
            "an overlapped block is an F and a BW, B or W");
}

TEST(Program, CountsTheInputAndTheWeightGradientOfBlocks) {
  const std::vector<Pass> list{make_pass(kF, 0), make_pass(kFB, 0), make_pass(kFB, 1),
                               make_pass(kBW, 1), make_pass(kBW, 2)};
  const auto fault = [&](const Pass& second) {
    return fault_of(list, {1, 1, 3, 1},
                    {{make_pass(kF, 1), make_pass(kB, 0)}, {make_pass(kF, 2), second}});
  };
  EXPECT_FALSE(fault(make_pass(kW, 0)));
  EXPECT_EQ(fault(make_pass(kB, 0))->message, "0B0 is there twice");
  EXPECT_EQ(fault(make_pass(kW, 1))->message, "0BW1 is there twice");
}

TEST(Program, CountsEverySequenceSplitAsAUnit) {
  std::vector<Pass> list;
  for (int unit = 0; unit < 6; ++unit) list.push_back(make_pass(kF, unit));
  for (int unit = 0; unit < 5; ++unit) list.push_back(make_pass(kBW, unit));
  EXPECT_EQ(fault_of(list, {1, 1, 2, 3})->message, "0BW5, or 0B5 and 0W5, is missing");
  list.push_back(make_pass(kBW, 5));
  EXPECT_FALSE(fault_of(list, {1, 1, 2, 3}));
}

TEST(Program, WritesAPassWithItsVirtualStage) {
  const Program program(
      {1, 2, 2, 1}, Placement::looped(1, 2),
      {{make_pass(kF, 0), make_pass(kF, 0, 1), make_pass(kF, 1), make_pass(kB, 0, 1),
        make_pass(kW, 0, 1), make_pass(kFB, 0), make_pass(kBW, 1, 1), make_pass(kBW, 1)}},
      {{make_pass(kF, 1, 1), make_pass(kBW, 0, 0)}});
  EXPECT_EQ(program.size(), 8U);
  EXPECT_EQ(program.text(0, program.passes(0)[1]), "1F0");
  EXPECT_EQ(program.text(0, program.passes(0)[4]), "1W0");
  EXPECT_EQ(program.text(0, program.passes(0)[5]), "1F1&0BW0");
  EXPECT_EQ(program.text(0, program.passes(0)[6]), "1BW1");
}

TEST(Program, RefusesARandomProgramFromWhichAnyPassWasTaken) {
  testing::Random random(7);
  for (int i = 0; i < 200; ++i) {
    const auto made = testing::random_case(random);
    PassLists lists;
    for (int device = 0; device < made.program.shape().devices; ++device) {
      const auto passes = made.program.passes(device);
      lists.emplace_back(passes.begin(), passes.end());
    }
    const auto fault = [&] {
      return Program::find_fault(made.program.shape(), made.program.placement(), lists,
                                 made.program.pairs());
    };
    ASSERT_FALSE(fault());
    auto& list = lists[random.integer(0, made.program.shape().devices - 1)];
    const auto at = list.begin() + random.integer(0, static_cast<int>(list.size()) - 1);
    const Pass taken = *at;
    list.erase(at);
    // Without its only R a stage of a single unit does not recompute, which is a program too.
    const auto recomputes_chunk = [&](const Pass& pass) {
      return pass.kind == PassKind::kR && pass.chunk == taken.chunk;
    };
    const bool none_left =
        taken.kind == PassKind::kR && std::ranges::none_of(list, recomputes_chunk);
    EXPECT_NE(fault().has_value(), none_left);
    list.push_back(taken);
    list.push_back(taken);
    EXPECT_TRUE(fault());
  }
}

TEST(Program, KnowsWhichStagesRecompute) {
  const Program program({1, 2, 1, 1}, Placement::looped(1, 2),
                        {{make_pass(kF, 0), make_pass(kF, 0, 1), make_pass(kBW, 0, 1),
                          make_pass(kR, 0), make_pass(kBW, 0)}});
  EXPECT_TRUE(program.recomputes(0));
  EXPECT_FALSE(program.recomputes(1));
  EXPECT_EQ(program.text(0, program.passes(0)[3]), "0R0");
}

TEST(Program, RecomputesAStageForAllMicrobatchesOnceAndBetweenForwardAndBackward) {
  const auto message = [](const std::vector<Pass>& list) {
    const auto fault = fault_of(list, {1, 1, 2, 1});
    return fault ? fault->message : "";
  };
  const Pass f0 = make_pass(kF, 0), r0 = make_pass(kR, 0), b0 = make_pass(kB, 0),
             w0 = make_pass(kW, 0), f1 = make_pass(kF, 1), r1 = make_pass(kR, 1),
             bw1 = make_pass(kBW, 1);
  EXPECT_EQ(message({f0, r0, f1, b0, w0, r1, bw1}), "");
  EXPECT_EQ(message({f0, r0, b0, w0, f1, bw1}),
            "0R0 is there, but 0R1 is missing: a stage recomputes all microbatches or none");
  EXPECT_EQ(message({f0, r0, r0, b0, w0, f1, r1, bw1}), "0R0 is there twice");
  EXPECT_EQ(message({r0, f0, b0, w0, f1, r1, bw1}), "0R0 stands before 0F0");
  EXPECT_EQ(message({f0, b0, r0, w0, f1, r1, bw1}), "0R0 stands behind the backward that needs it");
}

TEST(Program, RecomputesWhatAnOverlappedBlockTakesBackInFrontOfTheBlock) {
  const std::vector<OverlappedPair> pairs{{make_pass(kF, 1), make_pass(kBW, 0)}};
  const Pass block = make_pass(kFB, 0);
  EXPECT_FALSE(
      fault_of({make_pass(kF, 0), make_pass(kR, 0), block, make_pass(kR, 1), make_pass(kBW, 1)},
               {1, 1, 2, 1}, pairs));
  EXPECT_EQ(
      fault_of({make_pass(kF, 0), block, make_pass(kR, 0), make_pass(kR, 1), make_pass(kBW, 1)},
               {1, 1, 2, 1}, pairs)
          ->message,
      "0R0 stands behind the backward that needs it");
}

TEST(Program, VisitsBothPassesOfAnOverlappedBlockAndAnyOtherPassItself) {
  const Program program({1, 1, 2, 1}, Placement::looped(1, 1),
                        {{make_pass(kF, 0), make_pass(kFB, 0), make_pass(kBW, 1)}},
                        {{make_pass(kF, 1), make_pass(kBW, 0)}});
  std::vector<Pass> visited;
  for (const Pass& pass : program.passes(0)) {
    program.visit_parts(pass, [&](const Pass& part) { visited.push_back(part); });
  }
  EXPECT_EQ(visited, (std::vector<Pass>{make_pass(kF, 0), make_pass(kF, 1), make_pass(kBW, 0),
                                        make_pass(kBW, 1)}));
}

TEST(Program, KnowsTheUnitsThatEachStageCopiesAndThatItsMemoryThenTakesTime) {
  const Program kept(
      {1, 2, 1, 1}, Placement::looped(1, 2),
      {{make_pass(kF, 0), make_pass(kF, 0, 1), make_pass(kBW, 0, 1), make_pass(kBW, 0)}});
  EXPECT_TRUE(kept.memory_follows_order());
  EXPECT_EQ(kept.copied_units(), (std::vector{0, 0}));
  const Copy copy{.device = 0, .unit = 0, .chunk = 0, .after = 1};
  const Program copied = kept.with_copies({.links = {{{copy}, {copy}}}, .gates = {{}}});
  EXPECT_FALSE(copied.memory_follows_order());
  EXPECT_EQ(copied.copied_units(), (std::vector{1, 0}));
}

TEST(Pass, DoesTheWorkOfAllThatAnOverlappedBlockJoins) {
  EXPECT_TRUE(work_of(kFB).forward && work_of(kFB).input_gradient && work_of(kFB).weight_gradient);
  EXPECT_TRUE(work_of(kB).backward() && work_of(kW).backward() && work_of(kBW).backward());
  EXPECT_TRUE(work_of(kR).again);
  EXPECT_FALSE(work_of(kR).forward || work_of(kF).again || work_of(PassKind::kS).forward);
}

}  // namespace
}  // namespace pipesim::program_test
