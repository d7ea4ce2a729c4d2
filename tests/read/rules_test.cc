// Descriptions by rules for every device.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tuple>

#include "sim/case/simulate.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/description.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/description.h"
#include "sim/read/scenario.h"
#include "sim/read/yaml.h"
#include "tests/folder.h"
#include "tests/pipeline/problems.h"

namespace pipesim::rules_test {
namespace {

std::shared_ptr<const Schedule> ruled(const std::string& text) {
  const auto read = read_description(YamlSource("my.yaml", text));
  return {read, &read->schedule};
}

Problem problem_for_rules(const Schedule& schedule, int devices, int microbatches, int splits = 1) {
  const Placement place = schedule.place(devices, schedule.default_chunks);
  return testing::make_problem({devices, place.chunks(), microbatches, splits}, place);
}

std::string row_of(const Program& program, int device) {
  std::string row;
  for (const Pass& pass : program.passes(device)) {
    row += (row.empty() ? "" : " ") + program.text(device, pass);
  }
  return row;
}

std::string rules_error(const std::string& text) {
  try {
    const auto schedule = ruled(text);
    (void)schedule->plan(problem_for_rules(*schedule, 4, 8));
    return "no error";
  } catch (const InputError& error) {
    return error.what();
  }
}

void expect_in(const std::string& error, const std::string& part) {
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

const std::string kTurns =
    "  - {passes: [F, BW]}\n"
    "  - {passes: [BW]}\n";

TEST(Rules, RunRoundsUntilAPassHasNothingToRun) {
  const auto schedule = ruled(
      "placement: linear\nrules:\n  - {passes: [F], repeat: 2 * (p - 1 - d)}\n"
      "  - {passes: [F, B, W], repeat: 1}\n  - {passes: [F, B]}\n  - {passes: [B]}\n"
      "  - {passes: [W]}\n");
  const Program program = schedule->plan(problem_for_rules(*schedule, 2, 4));
  EXPECT_EQ(row_of(program, 0), "0F0 0F1 0F2 0B0 0W0 0F3 0B1 0B2 0B3 0W1 0W2 0W3");
  EXPECT_EQ(row_of(program, 1), "1F0 1B0 1W0 1F1 1B1 1F2 1B2 1F3 1B3 1W1 1W2 1W3");
}

TEST(Rules, NameChunks) {
  const auto schedule = ruled(
      "placement: v\nrules:\n  - {passes: [F0], repeat: p - d}\n  - {passes: [F1, B1, F0, B0]}\n"
      "  - {passes: [F1, B1, W1, B0]}\n  - {passes: [W]}\n");
  const Program program = schedule->plan(problem_for_rules(*schedule, 1, 3));
  EXPECT_EQ(row_of(program, 0),
            "0F0 1F0 1B0 0F1 0B0 1F1 1B1 0F2 0B1 1F2 1B2 1W0 0B2 0W0 1W1 0W1 "
            "1W2 0W2");
}

TEST(Rules, RunAForwardBesideABackward) {
  const auto schedule = ruled(
      "placement: linear\nrules:\n  - {passes: [F], repeat: p - d}\n"
      "  - {passes: [F&B, W], repeat: 1}\n  - {passes: [F&BW]}\n  - {passes: [BW]}\n");
  const Program program = schedule->plan(problem_for_rules(*schedule, 2, 4));
  EXPECT_EQ(row_of(program, 0), "0F0 0F1 0F2&0B0 0W0 0F3&0BW1 0BW2 0BW3");
  EXPECT_EQ(row_of(program, 1), "1F0 1F1&1B0 1W0 1F2&1BW1 1F3&1BW2 1BW3");
}

// A block's F is never that of its own backward: a round of them waits for one before.
TEST(Rules, RunNoBlockOfOneMicrobatch) {
  const std::string head = "placement: linear\nrules:\n";
  const auto schedule =
      ruled(head + "  - {passes: [F&BW]}\n  - {passes: [F], repeat: 1}\n  - {passes: [F&W]}\n" +
            "  - {passes: [F&BW]}\n  - {passes: [BW]}\n");
  const Program program = schedule->plan(problem_for_rules(*schedule, 1, 3));
  EXPECT_EQ(row_of(program, 0), "0F0 0F1&0BW0 0F2&0BW1 0BW2");
}

// A round that ends at its second block leaves nothing of its first.
TEST(Rules, TakeBackBlocksOfARoundThatDoesNotEnd) {
  const auto schedule = ruled(
      "placement: looped\norder: {F: i // m, B: 1 - i // m}\nrules:\n"
      "  - {passes: [F], repeat: m + 1}\n  - {passes: [F1&BW1, F1&BW1]}\n  - {passes: [F, BW]}\n"
      "  - {passes: [BW]}\n");
  const Program program = schedule->plan(problem_for_rules(*schedule, 1, 4));
  EXPECT_EQ(row_of(program, 0),
            "0F0 0F1 0F2 0F3 1F0 1F1&1BW0 1F2&1BW1 1F3 1BW2 1BW3 0BW0 0BW1 0BW2 0BW3");
  EXPECT_EQ(program.pairs().size(), 2U);
}

TEST(Rules, JoinPassesOfNamedChunks) {
  const auto read =
      read_description_file(PIPESIM_SOURCE_DIR "/schedules/descriptions/dualpipev-rules.yaml", {});
  const Schedule& built_in = *find_schedule("dualpipev");
  for (int p = 1; p <= 9; ++p) {
    for (const int m : {2 * p, 2 * p + 1, 3 * p, 4 * p + 3}) {
      SCOPED_TRACE(fmt::format("p {} m {}", p, m));
      const Problem problem = problem_for_rules(read->schedule, p, m);
      const Program ours = read->schedule.plan(problem);
      const Program theirs = built_in.plan(problem);
      EXPECT_GT(ours.pairs().size(), 0U);
      for (int d = 0; d < p; ++d) ASSERT_EQ(row_of(ours, d), row_of(theirs, d));
    }
  }
  EXPECT_TRUE(read->schedule.refusal(problem_for_rules(read->schedule, 4, 7)).has_value());
}

// Megatron-LM's combined 1F1B: a forward more ahead than interleaved 1F1B, then blocks.
TEST(Rules, JoinPassesInAnOrderOfChunks) {
  std::string text =
      testing::read_file(PIPESIM_SOURCE_DIR "/schedules/descriptions/interleaved-1f1b-rules.yaml");
  const auto put = [&text](const std::string& before, const std::string& after) {
    text.replace(text.find(before), before.size(), after);
  };
  put("(v - 1)*g}", "(v - 1)*g + 1}");
  put("[F, BW]", "[F&BW]");
  const auto schedule = ruled(text);
  const Schedule& built_in = *find_schedule("interleaved-1f1b");
  for (int p = 2; p <= 6; ++p) {
    for (const int m : {p, 2 * p, 5 * p}) {
      SCOPED_TRACE(fmt::format("p {} m {}", p, m));
      Problem problem = problem_for_rules(*schedule, p, m);
      for (StageCost& stage : problem.stages) stage.overlapped = Seconds(2);
      const Program ours = schedule->plan(problem);
      problem.options = {{"overlap_moe_expert_parallel_comm", true}};
      const Program theirs = built_in.plan(problem);
      for (int d = 0; d < p; ++d) ASSERT_EQ(row_of(ours, d), row_of(theirs, d));
    }
  }
}

TEST(Rules, HaveSplitsAndForwardsAgain) {
  const auto schedule = ruled(
      "placement: linear\nsplits: 2\nrules:\n  - {passes: [F], repeat: n}\n"
      "  - {passes: [F, R, BW]}\n  - {passes: [R, BW]}\n");
  const Program program = schedule->plan(problem_for_rules(*schedule, 1, 2, 2));
  EXPECT_EQ(row_of(program, 0), "0F0 0F1 0F2 0R1 0BW1 0F3 0R0 0BW0 0R3 0BW3 0R2 0BW2");
}

TEST(Rules, RunOnDevicesWithUnequalNumbersOfStages) {
  const auto with = [](const std::string& order) {
    const auto schedule = ruled("placement: [0, 1, 0]\norder: " + order +
                                "\nrules:\n  - {passes: [F]}\n  - {passes: [BW]}\n");
    return schedule->plan(problem_for_rules(*schedule, 2, 2));
  };
  const Program program = with("{F: i % (p - d), B: (p - d - 1) - i % (p - d)}");
  EXPECT_EQ(row_of(program, 0), "0F0 2F0 0F1 2F1 2BW0 0BW0 2BW1 0BW1");
  EXPECT_EQ(row_of(program, 1), "1F0 1F1 1BW0 1BW1");
  EXPECT_THROW((void)with("{F: i % 2, B: 1 - i % 2}"), InputError);
}

// The passes of the vocabulary are there where it is shared.
TEST(Rules, SpreadAVocabulary) {
  const auto schedule = ruled(
      "placement: linear\nrules:\n  - {passes: [IF, F], repeat: p - d + 1}\n"
      "  - {passes: [S, IF, F, T, BW, IB]}\n  - {passes: [S, T, BW, IB]}\n");
  Problem problem = problem_for_rules(*schedule, 1, 3);
  EXPECT_EQ(row_of(schedule->plan(problem), 0), "0F0 0F1 0F2 0BW0 0BW1 0BW2");
  problem.vocabulary = VocabularyPlacement::kVocab1;
  EXPECT_FALSE(schedule->refusal(problem).has_value());
  const Program program = schedule->plan(problem);
  EXPECT_EQ(program.vocabulary(), VocabularyPlacement::kVocab1);
  EXPECT_EQ(row_of(program, 0),
            "0IF0 0F0 0IF1 0F1 0S0 0IF2 0F2 0T0 0BW0 0IB0 0S1 0T1 0BW1 0IB1 0S2 0T2 0BW2 0IB2");
  const auto without = ruled("placement: linear\nrules:\n" + kTurns);
  EXPECT_TRUE(without->refusal(problem).has_value());
}

TEST(Rules, SayHowManyAreInFlight) {
  for (const char* name : {"1f1b", "zb-h1", "interleaved-1f1b", "dualpipev"}) {
    const auto read = read_description_file(
        fmt::format(PIPESIM_SOURCE_DIR "/schedules/descriptions/{}-rules.yaml", name), {});
    for (int p = 1; p <= 6; ++p) {
      for (const int m : {p, 2 * p, 4 * p + 1}) {
        Problem problem = problem_for_rules(read->schedule, p, m);
        for (StageCost& stage : problem.stages) stage.overlapped = Seconds(2.5);
        if (read->schedule.refusal(problem)) continue;
        const auto figures = figures_of_rules(*read->description->rules,
                                              values_of(*read->description, problem), problem);
        const Evaluation result = evaluate(read->schedule.plan(problem), problem);
        for (size_t d = 0; d < figures.size(); ++d) {
          EXPECT_EQ(figures[d].in_flight, result.devices[d].peak_in_flight)
              << name << " p " << p << " m " << m << " device " << d;
        }
      }
    }
  }
}

// PipeDream by rules: its order, and what is kept of weights and simulated of iterations that never
// drain.
TEST(WeightVersions, MakeAnAsynchronousSchedule) {
  const auto text = [](const std::string& kept, const std::string& after) {
    return "placement: linear\nrules:\n  - {passes: [F], repeat: p - 1 - d}\n" + kTurns +
           "weight_versions: {kept: " + kept + ", step_after: " + after + "}\n";
  };
  const auto seconds_of = [](const std::string& schedule) {
    const Scenario scenario = read_scenario(YamlSource(
        "s.yaml", "schedule: " + schedule +
                      "\nparallel: {pipeline_model_parallel_size: 4}\n"
                      "batch: {num_microbatches: 8}\n"
                      "cost: {kind: given, forward: 3 ms, backward_input: 4 ms, backward_weight: "
                      "2 ms, transfer: 1 ms, optimizer: 5 ms}\n"));
    return simulate(prepare_first(scenario)).report.iteration;
  };
  const auto path = testing::test_folder() / "my.yaml";
  for (const auto& [kept, after, name] :
       {std::tuple{"p - d", "microbatch", "pipedream"}, {"2", "iteration", "pipedream-2bw"}}) {
    const auto schedule = ruled(text(kept, after));
    const Schedule& built_in = *find_schedule(name);
    ASSERT_TRUE(schedule->versions.has_value());
    EXPECT_EQ(schedule->versions->every_microbatch, built_in.versions->every_microbatch);
    for (int device = 0; device < 4; ++device) {
      EXPECT_EQ(schedule->versions->kept(4, device), built_in.versions->kept(4, device));
    }
    testing::write_file(path, text(kept, after));
    EXPECT_EQ(seconds_of("{file: " + path.string() + "}"), seconds_of(name));
  }
  expect_in(rules_error(text("p - 1 - d + d // 3", "microbatch")),
            "my.yaml:6:25: device 0 keeps 3 versions of weights, but 0BW3 begins 3 steps after its "
            "F: expected 4 at least (p = 4)");
  expect_in(rules_error(text("p - d - 4", "iteration")),
            "my.yaml:6:25: device 0 keeps 0 versions of weights: expected 1 to 1024");
  expect_in(rules_error("placement: v\n" + text("2", "iteration").substr(18)),
            "my.yaml:6:1: weight_versions: iterations run into each other with a linear placement");
  expect_in(rules_error("placement: linear\nrules:\n  - {passes: [F], repeat: p - d}\n"
                        "  - {passes: [F&BW]}\n  - {passes: [BW]}\n"
                        "weight_versions: {kept: p, step_after: microbatch}\n"),
            "my.yaml:6:1: weight_versions: iterations run into each other with a linear placement, "
            "no splits and no pairs only");
}

TEST(Rules, SayWhatTheyLeaveOutAndWhereTheyDeadlock) {
  const std::string head = "placement: linear\nrules:\n";
  EXPECT_EQ(rules_error(head + "  - {passes: [F]}\n  - {passes: [BW], repeat: 7}\n"),
            "my.yaml:2:1: the rules leave 1 of 8 B, or BW, of stage 0 out on device 0 (p = 4, m = "
            "8)\n  rules:\n  ^");
  expect_in(rules_error(head + "  - {passes: [F, B]}\n"),
            "the rules leave 8 of 8 W of stage 0 out on device 0");
  // Device 1 takes the second chunk's forward before it has the first's.
  const std::string crossed = rules_error(
      "placement: looped\nrules:\n  - {passes: [F0, F1], repeat: d == 0 and m}\n"
      "  - {passes: [F1, F0]}\n  - {passes: [BW1, BW0]}\n");
  expect_in(crossed, "my.yaml:2:1: for p = 4, m = 8: ");
  expect_in(crossed, "device 1 waits before 5F0 for 4F0 of device 0");
  expect_in(
      rules_error("placement: linear\nrules:\n  - {passes: [F, R, BW], repeat: 3}\n" + kTurns),
      "a stage recomputes all microbatches or none");
}

TEST(Rules, AreRefusedWithTheirPlace) {
  const std::string head = "placement: linear\nrules:\n";
  expect_in(rules_error(head + "  - {passes: [F, BX]}\n"), "my.yaml:3:18: ");
  expect_in(rules_error(head + "  - {passes: [F, BW1]}\n" + kTurns),
            "my.yaml:3:18: device 0 has no chunk 1: they are 0 to 0");
  expect_in(rules_error(head + "  - {passes: [F, S0]}\n"),
            "my.yaml:3:18: rules.0.passes.1: a device's share of the vocabulary has no chunks");
  for (const char* block : {"F&", "&BW", "BW&F", "F&R", "F&BW&B", "F&bw", "F & BW"}) {
    expect_in(rules_error(head + "  - {passes: [F, '" + block + "']}\n" + kTurns),
              "my.yaml:3:18: rules.0.passes.1: expected F&BW, F&B or F&W as an overlapped block, "
              "with chunks as in F0&BW1");
  }
  expect_in(rules_error(head + "  - {passes: [F, F&BW1]}\n" + kTurns),
            "my.yaml:3:18: device 0 has no chunk 1: they are 0 to 0");
  expect_in(rules_error(head + "  - {passes: [F], repeat: s}\n"),
            "my.yaml:3:27: formula 's': nothing is called");
  expect_in(rules_error(head + "  - {pases: [F]}\n"), "passes");
  expect_in(rules_error("placement: looped\nrules:\n" + kTurns),
            "my.yaml:3:15: of which chunk? device 0 has 2: expected F0 to F1, or 'order: {F: "
            "FORMULA}'");
  expect_in(rules_error("placement: looped\norder: {F: 2 * i, B: 0}\nrules:\n" + kTurns),
            "my.yaml:2:12: F 1 of device 0 is of chunk 2: expected 0 to 1");
  expect_in(rules_error("placement: linear\nperiod: 3\nrules:\n" + kTurns),
            "my.yaml:2:1: period: is of a block: 'rules' has none");
  expect_in(rules_error("placement: linear\nperiod: 3\norder: {F: 0}\nblock: []\n"),
            "my.yaml:3:1: order: is of 'rules', which are not there");
}

}  // namespace
}  // namespace pipesim::rules_test
