#include "sim/read/description.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/case/program.h"
#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/walk.h"
#include "sim/pipeline/copy_cells.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/folder.h"
#include "tests/pipeline/problems.h"

namespace pipesim::description_test {
namespace {

std::shared_ptr<const Schedule> schedule_at(const std::string& path) {
  const auto read = read_description_file(path, {});
  return {read, &read->schedule};
}

std::shared_ptr<const Schedule> example(const std::string& name) {
  return schedule_at(fmt::format(PIPESIM_SOURCE_DIR "/schedules/descriptions/{}.yaml", name));
}

std::shared_ptr<const Schedule> described(const std::string& text) {
  const auto path = testing::test_folder() / "my.yaml";
  testing::write_file(path, text);
  return schedule_at(path.string());
}

Problem problem_for(const Schedule& schedule, const Shape& shape) {
  return testing::make_problem(shape, schedule.place(shape.devices, shape.chunks));
}

// A description's error, for 4 devices and 8 microbatches, without its folder.
std::string error_of(const std::string& text, int devices = 4, int chunks = 1) {
  try {
    const auto schedule = described(text);
    (void)schedule->plan(problem_for(*schedule, {devices, chunks, 8, 1}));
    return "no error";
  } catch (const InputError& error) {
    const std::string what = error.what();
    return what.substr(what.find("my.yaml"));
  }
}

std::string error_in_vocabulary(const std::string& text) {
  try {
    const auto schedule = described(text);
    Problem problem = problem_for(*schedule, {4, 1, 8, 1});
    problem.vocabulary = VocabularyPlacement::kVocab1;
    (void)schedule->plan(problem);
    return "no error";
  } catch (const InputError& error) {
    const std::string what = error.what();
    return what.substr(what.find("my.yaml"));
  }
}

void expect(const std::string& error, const std::string& part) {
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

// The first device and position at which two programs differ; empty where they are equal.
std::string difference(const Program& a, const Program& b) {
  if (!(a.placement() == b.placement())) return "other placements";
  for (int d = 0; d < a.shape().devices; ++d) {
    const auto [one, other] = std::ranges::mismatch(a.passes(d), b.passes(d));
    if (one == a.passes(d).end() && other == b.passes(d).end()) continue;
    return fmt::format("device {}, pass {}", d, one - a.passes(d).begin());
  }
  return "";
}

TEST(Description, OfABuiltInScheduleGivesTheSamePassesInTheSameOrder) {
  struct Family {
    std::string name;
    std::vector<int> chunks;
    const char* way = "";
  };
  for (const auto& [name, all_chunks, way] :
       {Family{"1f1b", {1}}, Family{"1f1b", {1}, "-rules"}, Family{"zb-h1", {1}},
        Family{"zb-h1", {1}, "-rules"}, Family{"interleaved-1f1b", {2, 3, 4}},
        Family{"interleaved-1f1b", {2, 3, 4}, "-rules"}, Family{"gis", {2, 3, 4, 5}},
        Family{"1f1b-v", {2}}, Family{"v-half", {2}}, Family{"v-min", {2}},
        Family{"chimera", {2}}}) {
    const Schedule& built_in = *find_schedule(name);
    const auto schedule = example(name + way);
    int compared = 0;
    for (const int v : all_chunks) {
      for (int p = 1; p <= 9; ++p) {
        for (const int m : {1, 2, 3, 5, p, p + 1, 2 * p, 2 * p + 1, 3 * p + 2, 4 * p, 30}) {
          SCOPED_TRACE(fmt::format("{}{} p {} v {} m {}", name, way, p, v, m));
          const Problem problem = for_planning(problem_for(built_in, {p, v, m, 1}));
          ASSERT_EQ(schedule->refusal(problem).has_value(), built_in.refusal(problem).has_value());
          if (built_in.refusal(problem)) continue;
          ++compared;
          ASSERT_EQ(difference(schedule->plan(problem), built_in.plan(problem)), "");
        }
      }
    }
    EXPECT_GT(compared, name == "chimera" ? 10 : 60) << name << way;  // it takes few shapes
  }
}

TEST(Description, TakesTheParametersOfTheBuiltInSchedules) {
  for (int p = 2; p <= 8; ++p) {
    for (long g = 1; g <= 2 * p; ++g) {
      for (const int m : {p, 2 * p, 3 * p + 1}) {
        for (const auto& [name, option, file] :
             {std::tuple{"gis", "group_size", "gis"},
              {"interleaved-1f1b", "microbatch_group_size_per_vp_stage", "interleaved-1f1b"},
              {"interleaved-1f1b", "microbatch_group_size_per_vp_stage",
               "interleaved-1f1b-rules"}}) {
          SCOPED_TRACE(fmt::format("{} p {} g {} m {}", file, p, g, m));
          const Schedule& built_in = *find_schedule(name);
          const auto schedule = example(file);
          Problem problem = for_planning(problem_for(built_in, {p, 3, m, 1}));
          problem.options = {{"g", g}};
          if (schedule->refusal(problem)) continue;
          const Program ours = schedule->plan(problem);
          problem.options = {{option, g}};
          ASSERT_FALSE(built_in.refusal(problem).has_value());
          ASSERT_EQ(difference(ours, built_in.plan(problem)), "");
        }
      }
    }
  }
}

const std::string kBlock =
    "period: 3\n"
    "block:\n"
    "  - {pass: F, stage: s, at: s}\n"
    "  - {pass: BW, stage: s, at: 3*p - 2 - 2*s}\n";

TEST(Description, OfTwoCopiesRunsBothDirections) {
  const auto schedule = described(
      "placement: bidirectional\n"
      "period: 8*p\n"
      "block:\n"
      "  - {pass: F, stage: s, at: s + 4*p*copy}\n"
      "  - {pass: BW, stage: s, at: p + 2*(p-1-s) + 4*p*copy}\n");
  const Problem problem = problem_for(*schedule, {4, 2, 8, 1});
  EXPECT_EQ(problem.placement.directions(), 2);
  // The second copy's microbatches are those from m/2 on.
  const Program program = schedule->plan(problem);
  EXPECT_NO_THROW(check_executable(program));
  EXPECT_EQ(program.text(3, program.passes(3)[0]), "3F0");
  EXPECT_EQ(program.text(3, program.passes(3)[2]), "4F4");
}

// D devices and 2f pipelines lose D/f - 2 equal passes (Chimera, Table 2).
TEST(Description, OfFourPipelinesHasHalfTheBubbleOfTwo) {
  for (const auto& [name, pipelines] : {std::pair{"chimera", 2}, {"chimera-4", 4}}) {
    const auto schedule = example(name);
    for (const int p : {4, 8, 12, 16}) {
      for (const int units : {1, 2, 5}) {
        SCOPED_TRACE(fmt::format("{} p {} units {}", name, p, units));
        Problem problem = problem_for(*schedule, {p, pipelines, units * p, 1});
        for (StageCost& cost : problem.stages) {
          cost.forward = Seconds(2);
          cost.backward_input = cost.backward_weight = Seconds(1);
          cost.transfer = Seconds(0);
        }
        EXPECT_EQ(problem.placement.directions(), pipelines);
        const Evaluation result = evaluate(schedule->plan(problem), problem);
        EXPECT_DOUBLE_EQ((result.makespan - result.work).value(), 2.0 * (2 * p / pipelines - 2));
      }
    }
  }
}

TEST(Description, PlacesStagesByAFormulaOrAList) {
  const auto by_formula = described("placement: s if s < p else 2*p - 1 - s\n" + kBlock);
  EXPECT_EQ(by_formula->place(3, 2), Placement::vee(3));
  const auto by_list = described("placement: [0, 1, 1, 0]\n" + kBlock);
  EXPECT_EQ(by_list->place(2, by_list->default_chunks), Placement::vee(2));
  const auto copies = described("placement: {device: [0, 1, 1, 0], copies: 2}\n" + kBlock);
  EXPECT_EQ(copies->place(2, copies->default_chunks), Placement::bidirectional(2));
  expect(error_of("placement: [0, 1, 1, 0]\n" + kBlock, 4, 2),
         "my.yaml:1:12: lists devices 0 to 1");
  expect(error_of("placement: '0 if s else s'\n" + kBlock, 2, 2), "device 0 holds 4 of 4 stages");
  expect(error_of("placement: s + 1\n" + kBlock), "stage 3 of 4 stands on device 4");
}

TEST(Description, PlacesUnequalNumbersOfStages) {
  const std::string block =
      "period: 6\n"
      "block:\n"
      "  - {pass: F, stage: s, at: s if s < 2 else 3}\n"
      "  - {pass: BW, stage: s, at: 13 if s == 0 else 8 if s == 1 else 4}\n";
  for (const std::string placement : {"[0, 1, 0]",
                                      "{device: 's if s < p else 2*p - 2 - s', "
                                      "stages: 2*p - 1}"}) {
    const auto schedule = described("placement: " + placement + "\n" + block);
    const Problem problem = problem_for(*schedule, {2, schedule->default_chunks, 5, 1});
    EXPECT_EQ(problem.placement, Placement::custom(std::vector{0, 1, 0}));
    const Program program = schedule->plan(problem);
    EXPECT_EQ(program.size(), 2 * 3 * 5U);
    EXPECT_EQ(program.text(0, program.passes(0)[2]), "2BW0");
    // Device 0 has a period of 6 slots, in which F of 1 s and BW of 2 s leave nothing free.
    EXPECT_EQ(evaluate(program, problem).devices[0].busy, Seconds(30));
    check_executable(program);
  }
  const auto map = [&](const std::string& stages) {
    return "placement: {device: 's if s < p else 2*p - 2 - s', stages: " + stages + "}\n" + block;
  };
  expect(error_of(map("p - 1"), 4, 2),
         "my.yaml:1:60: 3 stages on 4 devices of at most 2 chunks: expected 4 to 8");
  expect(error_of(map("p"), 4, 2), "my.yaml:1:12: devices hold at most 1 stages: expected v = 2");
  expect(error_of("placement: {device: 's % (p - 1)', stages: 2*p - 1}\n" + block, 3, 3),
         "device 2 holds 0 of 5 stages: expected 1 to 3");
  expect(error_of("placement: {device: [0, 1, 0], stages: 3}\n" + block, 2, 2),
         "my.yaml:1:32: placement.stages: the list of devices says how many stages there are");
}

// Seven slots are one microbatch's on every device, its passes of the vocabulary among them.
TEST(Description, HasPassesOfAVocabulary) {
  const std::string text =
      "placement: linear\nperiod: 7\nblock:\n"
      "  - {pass: IF, at: 0}\n"
      "  - {pass: F, stage: s, at: 7*(s + 1) + 1}\n"
      "  - {pass: S, at: 7*p + 2}\n"
      "  - {pass: T, at: 7*p + 3}\n"
      "  - {pass: BW, stage: s, at: 7*(2*p - 1 - s) + 4}\n"
      "  - {pass: IB, at: 7*(2*p - 1) + 6}\n";
  const auto schedule = described(text);
  Problem problem = problem_for(*schedule, {2, 1, 2, 1});
  const auto row = [](const Program& program, int device) {
    std::string row;
    for (const Pass& pass : program.passes(device)) {
      row += fmt::format("{}{} ", to_text(pass.kind), pass.microbatch);
    }
    return row;
  };
  EXPECT_EQ(row(schedule->plan(problem), 0), "F0 F1 BW0 BW1 ");
  for (const VocabularyPlacement vocabulary :
       {VocabularyPlacement::kInterlaced, VocabularyPlacement::kVocab1,
        VocabularyPlacement::kVocab2}) {
    problem.vocabulary = vocabulary;
    EXPECT_FALSE(schedule->refusal(problem).has_value());
    const Program program = schedule->plan(problem);
    EXPECT_EQ(program.vocabulary(), vocabulary);
    EXPECT_EQ(row(program, 0), "IF0 IF1 F0 F1 S0 T0 S1 T1 BW0 IB0 BW1 IB1 ");
    EXPECT_EQ(row(program, 1), "IF0 IF1 F0 S0 T0 BW0 F1 S1 T1 BW1 IB0 IB1 ");
  }
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    return error_in_vocabulary(other.replace(other.find(from), from.size(), to));
  };
  expect(replaced("7*p + 3", "7*p + 2"),
         "my.yaml:7:19: T of device 0, microbatch 0 and, of line 6, S of device 0, microbatch 0 "
         "share slot 30 of device 0");
  expect(replaced("7*p + 3", "7*(2*p - 1) + 10"), "my.yaml:3:1: for p = 4, m = 8: ");
  expect(replaced("IF, at: 0", "IF, stage: s, at: 0"),
         "every device has its share of the vocabulary: 'at' may name d");
  expect(replaced("IF, at: 0", "IF, at: s"),
         "my.yaml:4:20: block.0.at: every device has its share");
  expect(replaced("period: 7\n", "period: 7\nwarm_up: tighten\n"), "no shared vocabulary");
  expect(replaced("{pass: T", "{pass: S"), "the S of device 0 stand in line 6 already");
}

// Seconds per device are those of all its stages.
TEST(Description, SharesADevicesSecondsAmongItsStages) {
  const auto path = testing::test_folder() / "my.yaml";
  testing::write_file(
      path,
      "placement: [0, 1, 0]\norder: {F: 'i // m', B: 'i // m if d else 1 - i // m'}\n"
      "rules:\n  - {passes: [F]}\n  - {passes: [BW]}\n");
  const Scenario scenario = read_scenario(YamlSource(
      "s.yaml", "schedule: {file: " + path.string() +
                    "}\nparallel: {pipeline_model_parallel_size: 2}\nbatch: {num_microbatches: 3}\n"
                    "cost: {kind: given, per: device, forward: [4 s, 6 s], backward_input: 2 s, "
                    "backward_weight: 1 s}\n"));
  const Case made = prepare_first(scenario);
  EXPECT_EQ(made.problem.shape.chunks, 2);
  EXPECT_EQ(made.problem.stages[0].forward, Seconds(2));
  EXPECT_EQ(made.problem.stages[1].forward, Seconds(6));
  EXPECT_EQ(made.problem.stages[2].backward_input, Seconds(1));
}

TEST(Description, SplitsMicrobatches) {
  const auto schedule = described(
      "placement: linear\n"
      "splits: 2\n"
      "period: 12*p\n"
      "block:\n"
      "  - {pass: F, stage: s, at: s + k}\n"
      "  - {pass: BW, stage: s, at: p + n + 4*(p-1-s) + 2*(n-1-k)}\n");
  EXPECT_EQ(schedule->default_splits, 2);
  const Problem problem = problem_for(*schedule, {2, 1, 3, 2});
  EXPECT_NO_THROW(evaluate(schedule->plan(problem), problem));
}

TEST(Description, RunsForwardsAgainWhereItSays) {
  const auto schedule = described(
      "placement: linear\n"
      "period: 8*p\n"
      "block:\n"
      "  - {pass: F, stage: s, at: s}\n"
      "  - {pass: R, stage: s, at: p + 3*(p-1-s)}\n"
      "  - {pass: BW, stage: s, at: p + 3*(p-1-s) + 1}\n");
  const Problem problem = problem_for(*schedule, {4, 1, 6, 1});
  EXPECT_TRUE(schedule->plan(problem).recomputes(0));
}

std::string with_copies(const std::string& lines) {
  return "placement: linear\n"
         "period: 3\n"
         "block:\n"
         "  - {pass: F, stage: s, at: s}\n"
         "  - {pass: BW, stage: s, at: 3*p - 2 - 2*s}\n"
         "copies:\n" +
         lines;
}

TEST(Description, SaysWhatLeavesForTheHost) {
  const auto schedule = described(with_copies("  - {stage: 0, only: i < 2, room: 1}\n"));
  EXPECT_TRUE(schedule->copies());
  // Device 0 runs F0 F1 BW0 F2 BW1 BW2.
  const auto cells = copy_cells_of(schedule->plan(problem_for(*schedule, {2, 1, 3, 1})));
  using enum CopyCellKind;
  EXPECT_EQ(cells, (std::vector<CopyCell>{{kOut, 0, 1, 0, 0},
                                          {kIn, 0, 1, 0, 0},
                                          {kWait, 0, 1, 0, 0},
                                          {kOut, 0, 2, 0, 1},
                                          {kWait, 0, 2, 0, 1},
                                          {kIn, 0, 3, 0, 1}}));
}

TEST(Description, KeepsLessWhereActivationsLeave) {
  const auto peak = [](const std::string& lines) {
    const auto schedule = described(with_copies(lines));
    Problem problem = problem_for(*schedule, {4, 1, 8, 1});
    for (StageCost& cost : problem.stages) {
      cost.copy_out = cost.copy_in = 0.25 * cost.forward;
    }
    const Bytes all = evaluate(schedule->plan(problem), problem).devices[0].peak_activation;
    return all / problem.stages[0].activation;
  };
  EXPECT_DOUBLE_EQ(peak("  - {stage: 1, ahead: 1}\n"), 4);
  // One that leaves and one that comes back.
  EXPECT_DOUBLE_EQ(peak("  - {stage: 0..1, ahead: 0, room: 1}\n"), 2);
}

TEST(Description, TakesNoOffloadThatItsCopiesSayOtherwise) {
  testing::write_file(testing::test_folder() / "c.yaml", with_copies("  - {stage: 0}\n"));
  const auto error_beside = [](const std::string& offload) {
    const std::string file = (testing::test_folder() / "c.yaml").string();
    try {
      (void)prepare_first(read_scenario(YamlSource(
          "s.yaml", "schedule: {file: " + file + offload +
                        "}\nparallel: {pipeline_model_parallel_size: 4}\n"
                        "batch: {num_microbatches: 8}\ncost: {kind: given, forward: 1 ms, "
                        "backward_input: 1 ms, backward_weight: 1 ms, copy_out: 1 ms, copy_in: "
                        "1 ms}\n")));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_beside(", offload: {ratio: 0.5}"), "");
  expect(error_beside(", offload: true"), "expected a map of ratio and bandwidth");
  expect(error_beside(", offload: {chunks: 1}"), "'copies' of c.yaml say what leaves");
  expect(error_beside(", offload: {devices_per_link: 2}"), "expected ratio or bandwidth");
}

TEST(Description, LocatesWhatIsWrongWithCopies) {
  expect(error_of(with_copies("  - {stage: 0}\n  - {stage: s, only: i == 7}\n")),
         "8:5: line 7 copies the activation of stage 0 and microbatch 7 already");
  expect(error_of(with_copies("  - {stage: s, ahead: 0-i}\n")),
         "7:23: -1 passes ahead: expected at least 0");
  expect(error_of(with_copies("  - {stage: s, room: 0}\n")),
         "7:22: 0 passes behind F: expected at least 1");
  expect(error_of(with_copies("  - {stage: s, behind: 1}\n")), "behind: unknown key");
}

// A block with pairs is the rules that say the same.
TEST(Description, JoinsAForwardAndABackwardThatBeginTogether) {
  const auto block = example("1f1b-pairs");
  const auto rules = described(
      "placement: linear\nrules:\n  - {passes: [F], repeat: 2*(p - d) - 1}\n"
      "  - {passes: [F&BW]}\n  - {passes: [BW]}\n");
  for (int p = 1; p <= 7; ++p) {
    for (const int m : {1, p, 2 * p, 5 * p + 1}) {
      SCOPED_TRACE(fmt::format("p {} m {}", p, m));
      const Problem problem = problem_for(*block, {p, 1, m, 1});
      const Program program = block->plan(problem);
      EXPECT_EQ(difference(program, rules->plan(problem)), "");
      EXPECT_EQ(program.pairs().empty(), m <= 1) << program.pairs().size();
    }
  }
}

const std::string kPairs =
    "placement: linear\npairs: [F&BW]\nperiod: 2\nblock:\n  - {pass: F, stage: s, at: 2*s}\n"
    "  - {pass: BW, stage: s, at: 4*p - 2 - 2*s}\n";

// The block ends with the longer of its passes: what waits for the shorter waits for it too.
TEST(Description, LocatesWhatIsWrongWithPairs) {
  const auto with = [](const std::string& before, const std::string& after) {
    std::string text = kPairs;
    text.replace(text.find(before), before.size(), after);
    return error_of(text);
  };
  EXPECT_EQ(error_of(kPairs), "no error");
  expect(error_of("placement: linear\npairs: [F&BW]\nperiod: 4\nblock:\n"
                  "  - {pass: F, stage: s, at: 2*s}\n"
                  "  - {pass: BW, stage: s, slots: 4, at: 28 - 6*s}\n"),
         "my.yaml:5:29: F of stage 1, microbatch 7 begins in slot 30, but waits for F of stage 0, "
         "microbatch 7 of line 5, which ends with slot 31");
  expect(with("[F&BW]", "[F&B]"), "my.yaml:2:9: pairs.0: no line of the block has B");
  expect(with("[F&BW]", "[F&R]"), "F&R");
  expect(with("[F&BW]", "F&BW"), "expected a list such as [F&BW]");
  expect(with("pairs: [F&BW]\n", ""), "share slot");
  expect(with("at: 4*p - 2", "at: 4*p - 1"), "share slot");
  expect(with("pairs:", "warm_up: tighten\npairs:"), "and no pairs");
  expect(error_of("placement: linear\npairs: [F&BW]\nrules:\n  - {passes: [F, BW]}\n"),
         "my.yaml:2:1: pairs: is of a block: 'rules' has none");
}

TEST(Description, WithPairsNeedsTheirSeconds) {
  const auto seconds = [](const std::string& more) {
    const auto path = testing::test_folder() / "my.yaml";
    testing::write_file(path, kPairs);
    return prepare_first(read_scenario(YamlSource(
        "s.yaml", "schedule: {file: " + path.string() +
                      "}\nparallel: {pipeline_model_parallel_size: 4}\n"
                      "batch: {num_microbatches: 8}\n"
                      "cost: {kind: given, forward: 3 ms, backward_input: 4 ms, backward_weight: "
                      "2 ms" +
                      more + "}\n")));
  };
  EXPECT_NO_THROW((void)make_program(seconds(", overlapped: 6 ms")));
  EXPECT_THROW((void)make_program(seconds("")), InputError);
}

TEST(Description, NamesBothLinesOfPassesThatMeet) {
  const std::string error = error_of(
      "placement: linear\n"
      "period: 3\n"
      "block:\n"
      "  - {pass: F, stage: s, at: s}\n"
      "  - {pass: BW, stage: s, at: 3*p - 1 - 2*s}\n");
  expect(error,
         "my.yaml:4:29: F of stage 0, microbatch 4 and, of line 5, BW of stage 0, microbatch 0 "
         "share slot 12 of device 0 (p = 4, m = 8)");
}

TEST(Description, NamesBothLinesWhereAPassComesTooEarly) {
  expect(error_of("placement: linear\n"
                  "period: 3\n"
                  "block:\n"
                  "  - {pass: F, stage: s, at: 9 - 2*s}\n"
                  "  - {pass: BW, stage: s, at: 6*p - 2 - 2*s}\n"),
         "my.yaml:4:29: F of stage 1, microbatch 0 begins in slot 7, but waits for F of stage 0, "
         "microbatch 0 of line 4, which ends with slot 9 (p = 4, m = 8)");
}

TEST(Description, NamesPassesThatAreMissingOrDouble) {
  const std::string head = "placement: linear\nperiod: 3\nblock:\n";
  expect(error_of(head + "  - {pass: F, stage: s, at: s}\n"),
         "my.yaml:3:1: no line has the B, or BW of stage 0");
  expect(error_of(head + "  - {pass: F, stage: 0..2, at: s}\n"
                         "  - {pass: BW, stage: s, at: 3*p - 2 - 2*s}\n"),
         "no line has the F of stage 3");
  expect(error_of(head + "  - {pass: F, stage: s, at: s}\n"
                         "  - {pass: F, stage: 2, at: s}\n"
                         "  - {pass: BW, stage: s, at: 3*p - 2 - 2*s}\n"),
         "my.yaml:5:5: the F of stage 2 stand in line 4 already");
  expect(error_of(head + "  - {pass: F, stage: 2..p, at: s}\n"),
         "my.yaml:4:25: there is no stage 4: they are 0 to 3");
  expect(error_of(head + "  - {pass: F, stage: s, at: free}\n"), "only W take free slots");
}

TEST(Description, RefusesKeysAndNamesItDoesNotKnow) {
  expect(error_of("placement: linear\nperod: 3\n"),
         "my.yaml:2:1: perod: unknown key; did you mean 'period'?");
  expect(error_of("placement: lineer\n" + kBlock), "did you mean 'linear'?");
  expect(error_of("placement: linear\nwarm_up: tigthen\n" + kBlock), "did you mean 'tighten'?");
  expect(error_of("placement: linear\nlet: {s: 3}\n" + kBlock), "has a meaning of its own");
  expect(error_of("placement: linear\nlet: {g: 3}\nparameters: {g: {usual: 1, from: 1, to: 2}}\n" +
                  kBlock),
         "'g' is there already");
  expect(error_of("placement: linear\nparameters: {g: 3}\n" + kBlock), "stands in 'let'");
  expect(error_of("placement: linear\nchunks: 2\n" + kBlock), "says how many chunks");
  expect(error_of(""), "this file is empty");
  expect(error_of("batch: {num_microbatches: 8}\nschedule: 1f1b\n"), "this file is a scenario");
  expect(error_of("placement: linear\nperiod: 0\nblock:\n  - {pass: F, stage: s, at: s}\n"),
         "my.yaml:2:9: the period is 0");
}

TEST(Description, RefusesSizesThatMakeNoSchedule) {
  expect(error_of("placement: linear\ngroup: {size: 2, step: 4}\n" + kBlock),
         "my.yaml:2:24: the group's step is 4: expected 0 to the period, 3");
  expect(error_of("placement: linear\ngroup: {size: 0, step: 1}\n" + kBlock),
         "the group's size is 0");
  const std::string head = "placement: linear\nblock:\n  - {pass: F, stage: s, at: s}\n";
  expect(error_of(head + "  - {pass: BW, stage: s, at: 100*p}\nperiod: 500000000\n"),
         "begins in slot 1000000000: expected at most 2^29 slots from 0");
  expect(error_of(head + "  - {pass: BW, stage: s, at: s // (p - 4)}\nperiod: 3\n"),
         "0 is divided by 0");
  expect(error_of(head + "  - {pass: B, stage: s, at: 9*p - 2*s}\n"
                         "  - {pass: W, stage: s, at: free}\nperiod: 100000\n"),
         "W in free slots over 70");
}

TEST(Description, IsRefusedForWhatItDoesNotAccept) {
  const auto schedule = described("placement: linear\nrequire: m % 4 == 0 and m >= p\n" + kBlock);
  const auto refusal = schedule->refusal(problem_for(*schedule, {3, 1, 7, 1}));
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason, "my.yaml requires m % 4 == 0 and m >= p, not p = 3, v = 1, m = 7");
  EXPECT_EQ(refusal->nearest.microbatches, 8);
}

TEST(Description, SaysOfAParameterWhetherItsRangeOrItsUsualValueIsAtFault) {
  const auto reason = [](const std::string& range) {
    const auto schedule =
        described("placement: linear\nparameters: {g: {usual: 9, " + range + "}}\n" + kBlock);
    return schedule->refusal(problem_for(*schedule, {4, 1, 1, 1}))->reason;
  };
  expect(reason("from: 1, to: p"), "takes g from 1 to 4, not 9, which is its usual value");
  expect(reason("from: p, to: m"),
         "takes g from p to m, which are 4 and 1 for p = 4, v = 1, m = 1: none");
}

TEST(Description, SuggestsFunctionsWhereOneIsCalled) {
  const std::string head = "placement: linear\nperiod: 3\nblock:\n";
  expect(error_of(head + "  - {pass: F, stage: s, at: \"mx(s, 1)\"}\n"), "did you mean 'max'?");
  expect(error_of(head + "  - {pass: F, stage: s, at: ss}\n"), "did you mean 's'?");
}

const std::string kScenario =
    "parallel: {pipeline_model_parallel_size: 4}\n"
    "batch: {num_microbatches: 8}\n"
    "cost: {kind: given, forward: 1 s, backward_input: 1 s, backward_weight: 1 s}\n";

TEST(Description, StandsInAScenarioWithItsParameters) {
  const std::string folder = PIPESIM_SOURCE_DIR "/schedules/descriptions/";
  const auto makespan = [&](const std::string& schedule) {
    const Scenario scenario =
        read_scenario(YamlSource(folder + "s.yaml", kScenario + "schedule: " + schedule));
    const Case made = prepare_first(scenario);
    return evaluate(schedule_of(made.choice).plan(for_planning(made.problem)), made.problem)
        .makespan;
  };
  EXPECT_EQ(makespan("{file: gis.yaml, g: 2}"), makespan("{name: gis, group_size: 2}"));
  EXPECT_NE(makespan("{file: gis.yaml, g: 2}"), makespan("{file: gis.yaml}"));
  EXPECT_THROW(makespan("{file: gis.yaml, round: 2}"), InputError);
  EXPECT_THROW(makespan("{file: none.yaml}"), InputError);
}

}  // namespace
}  // namespace pipesim::description_test
