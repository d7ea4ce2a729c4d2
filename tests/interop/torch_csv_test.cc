#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sstream>
#include <tuple>

#include "sim/execution/evaluate.h"
#include "sim/execution/walk.h"
#include "sim/execution/with_offload.h"
#include "sim/execution/with_recompute.h"
#include "sim/interop/torch/csv_reader.h"
#include "sim/interop/torch/csv_writer.h"
#include "sim/interop/torch/rules.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::torch_csv_test {
namespace {

std::string refusal(const std::string& text) {
  try {
    (void)read_torch_csv("s.csv", text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(TorchCsv, TranslatesPyTorchsLetters) {
  const Program program = read_torch_csv("s.csv", "0F0,0I0,0W0\n1F0,1B0\n");
  EXPECT_EQ(program.passes(0)[1].kind, PassKind::kB);
  EXPECT_EQ(program.passes(0)[2].kind, PassKind::kW);
  EXPECT_EQ(program.passes(1)[1].kind, PassKind::kBW);
}

TEST(TorchCsv, FindsThePlacementInTheRows) {
  const Program vee = read_torch_csv("s.csv", "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n");
  EXPECT_EQ(vee.placement(), Placement::vee(2));
  const Program looped = read_torch_csv("s.csv", "0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n");
  EXPECT_EQ(looped.placement(), Placement::looped(2, 2));
}

TEST(TorchCsv, ReadsOverlappedBlocksIdleSlotsAndQuotes) {
  const Program program =
      read_torch_csv("s.csv", "0F0,, 1F0 ,\"(0F1;1B0)OVERLAP_F_B\",1F1,1B1,0B0,0B1\r\n");
  ASSERT_EQ(program.pairs().size(), 1U);
  EXPECT_EQ(program.text(0, program.passes(0)[2]), "0F1&1BW0");
}

// The dump that PyTorch's schedules.py makes by default (format compute_comms).
TEST(TorchCsv, ReadsMessagesAndSkipsWhatPyTorchDerives) {
  const Program plain = read_torch_csv("s.csv", "0F0,0B0\n1F0,1B0\n");
  const Program dumped = read_torch_csv("s.csv",
                                        "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n"
                                        "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1RESHARD\n");
  for (int device = 0; device < 2; ++device) {
    EXPECT_TRUE(std::ranges::equal(plain.passes(device), dumped.passes(device)));
  }
  EXPECT_NE(refusal("0UNSHARD\n").find("this rank has no action"), std::string::npos);
  EXPECT_NE(refusal("0F0,0B0,0UNSHARDED\n").find("cell '0UNSHARDED'"), std::string::npos);
  EXPECT_NE(refusal("0F0,0B0,UNSHARD\n").find("cell 'UNSHARD'"), std::string::npos);
}

TEST(TorchCsv, HoldsMessagesAgainstThePassesThatNeedThem) {
  const std::string good = "0F0,0SEND_F0,0RECV_B0,0B0\n";
  EXPECT_EQ(refusal(good + "1RECV_F0,1F0,1B0,1SEND_B0\n"), "");
  EXPECT_TRUE(refusal(good + "1F0,1RECV_F0,1B0,1SEND_B0\n")
                  .starts_with("s.csv:2:1: runs before 1RECV_F0, whose data it needs"));
  EXPECT_TRUE(refusal(good + "1RECV_F0,1F0,1SEND_B0,1B0\n")
                  .starts_with("s.csv:2:23: 1SEND_B0, which sends its output, stands before it"));
  EXPECT_TRUE(refusal(good + "1RECV_F0,1F0,1B0\n")
                  .starts_with("s.csv:2:14: 1SEND_B0 is missing behind it"));
  EXPECT_TRUE(refusal("0F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n")
                  .starts_with("s.csv:1:1: 0SEND_F0 is missing behind it"));
  EXPECT_TRUE(refusal(good + "1RECV_F0,1RECV_F0,1F0,1B0,1SEND_B0\n")
                  .starts_with("s.csv:2:10: a second time"));
  EXPECT_TRUE(refusal(good + "1RECV_F0,1F0,1B0,1SEND_B0,1SEND_F0\n")
                  .starts_with("s.csv:2:27: there is no such stage"));
  EXPECT_TRUE(refusal("0F0,1F0,0SEND_F0,1B0,0B0\n").starts_with("s.csv:1:9: stages 0 and 1 stand"));
}

// Each rank's message comes first in its own row, and its other end second.
TEST(TorchCsv, RefusesMessagesThatWaitForEachOther) {
  const std::string forward = "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n";
  EXPECT_EQ(refusal(forward + "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n"), "");
  EXPECT_TRUE(refusal(forward + "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n")
                  .starts_with("s.csv:1:18: deadlock: rank 0 is in 0SEND_F1, whose 1RECV_F1 stands "
                               "behind 1SEND_B0 of rank 1, whose 0RECV_B0 stands behind 0SEND_F1 "
                               "of rank 0"));
}

TEST(TorchCsv, ReadsCommentsAndForwardsThatRunAgain) {
  const Program program =
      read_torch_csv("s.csv", "# rank 0 recomputes\n0F0,0R0,0B0\n  # rank 1\n1F0,1B0\n");
  EXPECT_TRUE(program.recomputes(0));
  EXPECT_FALSE(program.recomputes(1));
  EXPECT_NE(refusal("# nothing\n0F0,0X0\n").find("s.csv:2:6"), std::string::npos);
}

TEST(TorchCsv, LocatesABadCell) {
  EXPECT_EQ(refusal("0F0,0B0\n1F0,1X0\n"),
            "s.csv:2:6: cell '1X0': expected F, I, W, B or R after the stage\n  1F0,1X0\n       ^");
  EXPECT_NE(refusal("0F0,0B\n").find("s.csv:1:7: cell '0B'"), std::string::npos);
  EXPECT_NE(refusal("F0\n").find("no stage here"), std::string::npos);
  EXPECT_NE(refusal("0F99999999999\n").find("larger than"), std::string::npos);
  EXPECT_NE(refusal("0F0;0B0\n").find("nothing may follow"), std::string::npos);
  EXPECT_NE(refusal("(0F0;0F1)OVERLAP_F_B\n").find("full backward"), std::string::npos);
  EXPECT_NE(refusal("").find("a row per rank"), std::string::npos);
}

TEST(TorchCsv, HasBlocksOfAForwardWithAnyPartOfABackward) {
  const std::string text =
      "0F0,(0F1;0I0)OVERLAP_F_B,(0F2;0W0)OVERLAP_F_B,(0F3;0B1)OVERLAP_F_B,"
      "0B2,0B3\n";
  const Program program = read_torch_csv("s.csv", text);
  const auto kind = [&](size_t pair) { return program.pairs()[pair].backward.kind; };
  ASSERT_EQ(program.pairs().size(), 3U);
  EXPECT_EQ(kind(0), PassKind::kB);
  EXPECT_EQ(kind(1), PassKind::kW);
  EXPECT_EQ(kind(2), PassKind::kBW);
  std::ostringstream out;
  write_torch_csv(out, program, "s");
  EXPECT_EQ(out.str(), text);
}

void expect_same(const Program& read, const Program& written, const std::string& what) {
  EXPECT_EQ(read.placement(), written.placement()) << what;
  EXPECT_EQ(read.shape(), written.shape()) << what;
  for (int device = 0; device < written.shape().devices; ++device) {
    ASSERT_EQ(read.passes(device).size(), written.passes(device).size()) << what;
    for (size_t i = 0; i < read.passes(device).size(); ++i) {
      EXPECT_EQ(read.text(device, read.passes(device)[i]),
                written.text(device, written.passes(device)[i]))
          << what;
    }
  }
}

Program out_and_in(const Program& program) {
  std::ostringstream out;
  write_csv(out, program);
  return read_torch_csv("s.csv", out.str());
}

// Splits, copies of the model and passes of a vocabulary among them.
TEST(Csv, HasEverySchedule) {
  int written = 0;
  int beyond_torch = 0;
  for (const Schedule* schedule : schedules()) {
    for (const VocabularyPlacement vocabulary :
         {VocabularyPlacement::kFirstLast, VocabularyPlacement::kInterlaced,
          VocabularyPlacement::kVocab1, VocabularyPlacement::kVocab2}) {
      Problem problem =
          testing::make_problem({4, schedule->default_chunks, 12, schedule->default_splits},
                                schedule->place(4, schedule->default_chunks));
      for (StageCost& stage : problem.stages) stage.overlapped = Seconds(3);
      problem.vocabulary = vocabulary;
      problem.vocabulary_costs.assign(4, {Seconds(1), Seconds(1), Seconds(1), Seconds(1)});
      const Problem planning = for_planning(problem, *schedule);
      if (schedule->offloads() || schedule->refusal(planning)) continue;
      const Program program = schedule->plan(planning);
      const std::string what = fmt::format("{}, {}", schedule->name, to_text(vocabulary));
      const Program read = out_and_in(program);
      expect_same(read, program, what);
      EXPECT_EQ(is_sharded(read.vocabulary()), is_sharded(vocabulary)) << what;
      ++written;
      if (torch_objection(program)) ++beyond_torch;
      if (vocabulary != VocabularyPlacement::kFirstLast || !program.pairs().empty()) continue;
      const Program again = with_recompute(program, 1);
      expect_same(out_and_in(again), again, what + ", R");
    }
  }
  EXPECT_GE(written, 30);
  EXPECT_GE(beyond_torch, 10);
}

TEST(Csv, HasRandomPrograms) {
  testing::Random random(7);
  for (int i = 0; i < 300; ++i) {
    const Program program = testing::random_case(random).program;
    const Placement& place = program.placement();
    // A device that alone has both copies of the model: nothing says that there are two.
    if (place.directions() > 1 && place.devices() == 1) continue;
    expect_same(out_and_in(program), program, fmt::format("case {}", i));
  }
}

void expect_same_copies(const CopyPlan& read, const CopyPlan& written, const std::string& what) {
  const auto key = [](const Copy& copy) {
    return std::tuple(copy.device, copy.unit, copy.chunk, copy.alone, copy.after);
  };
  ASSERT_EQ(read.links.size(), written.links.size()) << what;
  for (size_t link = 0; link < written.links.size(); ++link) {
    EXPECT_TRUE(std::ranges::equal(read.links[link].out, written.links[link].out, {}, key, key))
        << what;
    EXPECT_TRUE(std::ranges::equal(read.links[link].in, written.links[link].in, {}, key, key))
        << what;
    const auto gate = [](const Gate& each) { return std::pair(each.position, each.out); };
    EXPECT_TRUE(std::ranges::equal(read.gates[link], written.gates[link], {}, gate, gate)) << what;
  }
}

TEST(Csv, HasCopiesToTheHost) {
  for (const char* name : {"1f1b", "interleaved-1f1b", "zb-h1", "gpipe", "seq-1f1b"}) {
    for (const double seconds : {0.1, 0.7, 2.0}) {
      const Schedule& schedule = *find_schedule(name);
      Problem problem =
          testing::make_problem({4, schedule.default_chunks, 12, schedule.default_splits},
                                schedule.place(4, schedule.default_chunks), {2, 2, 1, 0});
      for (StageCost& stage : problem.stages) {
        stage.copy_out = Seconds(seconds);
        stage.copy_in = Seconds(seconds);
      }
      problem.copy_alone_factor = 0.5;
      const Program program = with_offload(schedule.plan(for_planning(problem, schedule)), problem,
                                           {.chunks = schedule.default_chunks});
      const std::string what = fmt::format("{}, {} s", name, seconds);
      ASSERT_NE(program.copies(), nullptr) << what;
      ASSERT_FALSE(program.copies()->links[0].out.empty()) << what;
      const Program read = out_and_in(program);
      expect_same(read, program, what);
      ASSERT_NE(read.copies(), nullptr) << what;
      expect_same_copies(*read.copies(), *program.copies(), what);
      EXPECT_EQ(evaluate(read, problem).makespan, evaluate(program, problem).makespan) << what;
    }
  }
}

TEST(Csv, LocatesCopiesThatCannotBe) {
  const std::string head = "0F0,0F1,";
  EXPECT_EQ(refusal(head + "0OUT0,0B1,0IN0,0B0\n"), "");
  EXPECT_NE(refusal("0OUT0,0F0,0IN0,0B0\n").find("s.csv:1:1: its F stands behind it"),
            std::string::npos);
  EXPECT_NE(refusal(head + "0OUT0,0B1,0B0\n").find("s.csv:1:9: no IN of it stands behind it"),
            std::string::npos);
  EXPECT_NE(refusal(head + "0IN0,0B1,0B0\n").find("s.csv:1:9: no OUT of it stands before it"),
            std::string::npos);
  EXPECT_NE(refusal(head + "0OUT0,0B1,0B0,0IN0\n")
                .find("s.csv:1:23: the backward that needs it stands before it"),
            std::string::npos);
  EXPECT_NE(refusal(head + "0OUT0,0OUT0,0IN0,0B1,0B0\n").find("s.csv:1:15: it has left already"),
            std::string::npos);
  EXPECT_NE(refusal(head + "0OUT0,0IN0,0B1,0B0,0WAIT0\n").find("1:28: no pass stands behind it"),
            std::string::npos);
  EXPECT_NE(refusal(head + "0OUT2,0B1,0B0\n")
                .find("s.csv:1:9: this rank has no such stage and microbatch"),
            std::string::npos);
  EXPECT_NE(refusal("0F0,(0F1;0OUT0)OVERLAP_F_B,0B0,0B1\n").find("an overlapped block is"),
            std::string::npos);
}

TEST(Csv, ReadsSplitsVocabularyAndCopiesOfTheModel) {
  const Program splits = read_torch_csv("s.csv", "0F0.0,0F0.1,0B0.1,0B0.0\n");
  EXPECT_EQ(splits.shape().splits, 2);
  EXPECT_EQ(splits.shape().microbatches, 1);
  EXPECT_EQ(splits.text(0, splits.passes(0)[1]), "0F1");
  const Program vocabulary = read_torch_csv("s.csv", "IF0,0F0,S0,T0,0B0,IB0\n");
  EXPECT_EQ(vocabulary.vocabulary(), VocabularyPlacement::kVocab2);
  EXPECT_EQ(vocabulary.with_vocabulary(VocabularyPlacement::kVocab1).vocabulary(),
            VocabularyPlacement::kVocab1);
  EXPECT_THROW((void)splits.with_vocabulary(VocabularyPlacement::kVocab1), LogicError);
  // Stage 0 of microbatch 0 and stage 1 of microbatch 1 stand on rank 0.
  const Program both = read_torch_csv("s.csv", "0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n");
  EXPECT_EQ(both.placement(), Placement::bidirectional(2));
  check_executable(both);
}

TEST(Csv, LocatesWhatIsWrongWithSplitsVocabularyAndCopies) {
  EXPECT_EQ(refusal("0F0.0,0F0.,0B0\n"),
            "s.csv:1:11: cell '0F0.': expected <stage><F|I|W|B|R><microbatch>, such as 2F0: no "
            "split here\n  0F0.0,0F0.,0B0\n            ^");
  EXPECT_NE(refusal("0F0.1024,0B0\n")
                .find("s.csv:1:5: cell '0F0.1024': a microbatch has at most "
                      "1024 splits"),
            std::string::npos);
  EXPECT_NE(refusal("0F0.0,0B0.1\n").find("s.csv:1:1: 0B0.0, or 0I0.0 and 0W0.0, is missing"),
            std::string::npos);
  EXPECT_NE(refusal("0F0.0,0B0.9\n")
                .find("s.csv:1:7: 1 microbatches of 10 splits on 1 stages need "
                      "at least 20 passes, but 2 are there"),
            std::string::npos);
  EXPECT_NE(refusal("0F0,S0,T0,0B0,IB0\n").find("s.csv:1:1: IF0 of rank 0 is missing"),
            std::string::npos);
  EXPECT_NE(refusal("0F0,0B0,S0,S0\n").find("s.csv:1:12: S0 of rank 0 is there twice"),
            std::string::npos);
  EXPECT_NE(refusal("0F0,0B0\nS0,T0\n").find("s.csv:2:1: this rank has no pass of a stage"),
            std::string::npos);
  EXPECT_NE(refusal("0F0,0B0,0R0,0R0\n1F0,1B0,0F1,0B1\n")
                .find("s.csv:2:9: stage 0 stands on rank 0 already; of 2 copies of the model that "
                      "of microbatches 1 to 1 would have no stage 1"),
            std::string::npos);
  EXPECT_NE(refusal("0F0,0F1,0B1\n0B0\n").find("s.csv:2:1: stage 0 stands on rank 0 already"),
            std::string::npos);
  EXPECT_NE(refusal("0F0\n0B0\n").find("s.csv:2:1: stage 0 stands on rank 0 already"),
            std::string::npos);
}

TEST(PassRows, HaveThePassesAsProgramsWriteThem) {
  for (const char* name : {"zb-h1", "1f1b", "zb-v", "dualpipev"}) {
    const Schedule& schedule = *find_schedule(name);
    Problem problem = testing::make_problem({4, schedule.default_chunks, 8, 1}, {1, 1, 1, 0});
    problem.placement = schedule.place(4, schedule.default_chunks);
    for (StageCost& stage : problem.stages) stage.overlapped = Seconds(3);
    const Program written = schedule.plan(for_planning(problem));
    std::string rows;
    for (int device = 0; device < 4; ++device) {
      for (const Pass& pass : written.passes(device)) rows += written.text(device, pass) + ", ";
      rows += '\n';
    }
    const Program read = read_pass_rows("rows", rows);
    for (int device = 0; device < 4; ++device) {
      ASSERT_EQ(read.passes(device).size(), written.passes(device).size()) << name;
      for (size_t i = 0; i < read.passes(device).size(); ++i) {
        EXPECT_EQ(read.text(device, read.passes(device)[i]),
                  written.text(device, written.passes(device)[i]));
      }
    }
  }
}

TEST(PassRows, AreRefusedInTheirOwnLetters) {
  const auto refusal_of = [](const std::string& text) -> std::string {
    try {
      (void)read_pass_rows("rows", text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_TRUE(refusal_of("0F0, 0I0")
                  .starts_with("rows:1:7: cell '0I0': expected F, B, W, BW or R after the stage"));
  EXPECT_TRUE(refusal_of("0F0, 0BW")
                  .starts_with("rows:1:9: cell '0BW': expected <stage><F|B|W|BW|R><microbatch>"));
  EXPECT_TRUE(refusal_of("0F0&0F1").starts_with(
      "rows:1:8: cell '0F0&0F1': an overlapped block is an F and a BW, B or W"));
  EXPECT_TRUE(refusal_of("0F0, 0BW0;").starts_with("rows:1:10: cell '0BW0;': nothing may follow"));
  EXPECT_TRUE(refusal_of("0F0, 0SEND_F0").starts_with("rows:1:7: cell '0SEND_F0': expected F"));
}

TEST(TorchCsv, LocatesADoubleAndAMissingPass) {
  EXPECT_NE(refusal("0F0,0F0,0B0\n").find("s.csv:1:5: 0F0 is there twice"), std::string::npos);
  EXPECT_NE(refusal("0F0,0I0,0F1,0B1\n").find("s.csv:1:1: 0I0 is there, but 0W0 is missing"),
            std::string::npos);
  EXPECT_NE(refusal("0F0,0I0,0W0,0F1\n1F0,1I0,1W0,0B1\n")
                .find("s.csv:2:13: stage 0 stands on rank 0 already"),
            std::string::npos);
  EXPECT_NE(refusal("0F0,0B0\n2F0,2B0\n").find("stage 1 is not"), std::string::npos);
}

TEST(TorchCsv, ReadsAndWritesRanksWithUnequalNumbersOfStages) {
  const std::string text =
      "0F0,0F1,2F0,2B0,2F1,2B1,,0B0,0B1\n"
      ",1F0,1F1,,1B0,,1B1\n";
  const Program program = read_torch_csv("s.csv", text);
  EXPECT_EQ(program.placement(), Placement::custom(std::vector{0, 1, 0}));
  EXPECT_EQ(program.shape().chunks, 2);
  // F 1 s, BW 2 s on each of three stages: device 0 alone has 12 s of work, and waits for 2F0 (1F0
  // ends at 2, with 0F1) nowhere.
  const Problem problem = testing::make_problem(program.shape(), program.placement());
  EXPECT_EQ(evaluate(program, problem).devices[0].busy, Seconds(12));
  std::ostringstream out;
  write_torch_csv(out, program);
  const Program again = read_torch_csv("out.csv", out.str());
  EXPECT_EQ(again.placement(), program.placement());
  for (int device = 0; device < 2; ++device) {
    EXPECT_TRUE(std::ranges::equal(again.passes(device), program.passes(device)));
  }
}

TEST(TorchCsv, RefusesAMicrobatchNumberBeforeAnythingIsSizedByIt) {
  EXPECT_NE(refusal("0F1000000,0B0\n").find("s.csv:1:1: 1000001 microbatches"), std::string::npos);
}

TEST(TorchCsv, NamesPassesAsItsCellsDo) {
  // 1F1 is stage 1 of the second copy of the model.
  EXPECT_NE(
      refusal("0F0,1F1,1B1,0B0,1F1\n1F0,0F1,0B1,1B0\n").find("s.csv:1:17: 1F1 is there twice"),
      std::string::npos);
  EXPECT_NE(refusal("0F0.0,0F0.1,0B0.1,0B0.0,0B0.1\n").find("s.csv:1:25: 0B0.1 is there twice"),
            std::string::npos);
  EXPECT_NE(
      refusal("0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n").find("s.csv:1:1: 0B1, or 0I1 and 0W1, is missing"),
      std::string::npos);
  EXPECT_NE(refusal("0F0,0W0\n").find("s.csv:1:1: 0W0 is there, but 0I0 is missing"),
            std::string::npos);
}

TEST(TorchCsv, LocatesADeadlock) {
  EXPECT_NE(
      refusal("0F0,0B0,0F1,0B1\n1F1,1F0,1I0,1W0,1B1\n")
          .find("s.csv:1:5: deadlock: 0B0 needs 1I0, which stands behind 1F1 needs 0F1, which "
                "stands behind 0B0"),
      std::string::npos);
  // Device 0 waits, too, but for devices 1 and 2, which wait for each other.
  EXPECT_NE(
      refusal("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n2F1,2F0,2B0,2B1\n")
          .find("s.csv:2:5: deadlock: 1B0 needs 2B0, which stands behind 2F1 needs 1F1, which "
                "stands behind 1B0"),
      std::string::npos);
  EXPECT_NE(refusal("0F0,0OUT0,0IN0,0WAIT0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n")
                .find("s.csv:1:23: deadlock: 0B0 needs 1B0, which stands behind 1F1 needs 0F1"),
            std::string::npos);
  EXPECT_NE(
      refusal("IF0,0F0,S0,S1,T0,T1,IF1,0F1,0B0,0B1,IB0,IB1\n"
              "IF0,IF1,1F0,1F1,S1,S0,T0,T1,1B0,1B1,IB0,IB1\n")
          .find("s.csv:1:12: deadlock: S1 of rank 0 needs 1F1, which stands behind 1F1 needs 0F1"),
      std::string::npos);
  // Both halves of a block wait for the other rank's.
  EXPECT_NE(refusal("0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n1F0,1F2,1B0,1F1,1B1,1B2\n")
                .find("s.csv:1:9: deadlock: 0F2&0B0 needs 1B0, which stands behind 1F2 needs 0F2"),
            std::string::npos);
}

// Every schedule of one direction survives the way out and in, pass by pass.
TEST(TorchCsv, RoundTripsEverySchedule) {
  int round_trips = 0;
  for (const Schedule* schedule : schedules()) {
    Problem problem;
    problem.shape = {4, schedule->default_chunks, 12, 1};
    problem.placement = schedule->place(4, schedule->default_chunks);
    const StageCost cost{.forward = Seconds(1),
                         .backward_input = Seconds(1),
                         .backward_weight = Seconds(1),
                         .overlapped = Seconds(2),
                         .transfer = {},
                         .activation = {},
                         .weight_stash = {}};
    problem.stages.assign(problem.placement.virtual_stages(), cost);
    if (schedule->refusal(problem) || problem.placement.directions() > 1) continue;
    if (schedule->offloads())
      continue;  // the form has no copies: tests/interop/torch_rules_test.cc
    const Program program = schedule->plan(for_planning(problem));
    std::ostringstream out;
    write_torch_csv(out, program);
    const Program again = read_torch_csv("again.csv", out.str());
    EXPECT_EQ(again.placement(), program.placement()) << schedule->name;
    for (int device = 0; device < 4; ++device) {
      const auto before = program.passes(device);
      const auto after = again.passes(device);
      EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin(), after.end()))
          << schedule->name;
    }
    ++round_trips;
  }
  EXPECT_GE(round_trips, 6);
}

TEST(TorchCsv, PutsEveryInputInAnEarlierColumn) {
  const Schedule* schedule = find_schedule("1f1b");
  Problem problem;
  problem.shape = {3, 1, 3, 1};
  problem.placement = schedule->place(3, 1);
  problem.stages.resize(3);
  std::ostringstream out;
  write_torch_csv(out, schedule->plan(problem));
  EXPECT_EQ(out.str(),
            "0F0,0F1,0F2,,,0B0,,0B1,,0B2\n"
            ",1F0,1F1,,1B0,1F2,1B1,,1B2\n"
            ",,2F0,2B0,2F1,2B1,2F2,2B2\n");
}

TEST(TorchCsv, RefusesWhatItCannotExpress) {
  const Placement both = Placement::bidirectional(2);
  PassLists lists{{make_pass(PassKind::kF, 0, 0), make_pass(PassKind::kF, 1, 1),
                   make_pass(PassKind::kBW, 1, 1), make_pass(PassKind::kBW, 0, 0)},
                  {make_pass(PassKind::kF, 1, 1), make_pass(PassKind::kF, 0, 0),
                   make_pass(PassKind::kBW, 0, 0), make_pass(PassKind::kBW, 1, 1)}};
  const Program program({2, 2, 2, 1}, both, lists);
  std::ostringstream out;
  EXPECT_THROW(write_torch_csv(out, program), InfeasibleError);
  const Program recomputed(
      {1, 1, 1, 1}, Placement::looped(1, 1),
      {{make_pass(PassKind::kF, 0), make_pass(PassKind::kR, 0), make_pass(PassKind::kBW, 0)}});
  EXPECT_THROW(write_torch_csv(out, recomputed), InfeasibleError);
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace pipesim::torch_csv_test
