// A sweep file's values, points and keys, and the mistakes that it may hold.
#include "sim/sweep/sweep.h"

#include <gtest/gtest.h>
#include <set>

#include "sim/core/error.h"
#include "sim/read/scenario.h"
#include "tests/folder.h"
#include "tests/sweep/files.h"

namespace pipesim::sweep_test {
namespace {

using testing::kSmallSweep;

std::string with_section(const std::string& section) {
  return kSmallSweep.substr(0, kSmallSweep.find("sweep:")) + section;
}

std::vector<std::string> column(const Sweep& sweep, size_t key) {
  std::vector<std::string> values;
  for (std::uint32_t s = 0; s < sweep.settings(); ++s) values.push_back(sweep.values(s)[key]);
  return values;
}

std::string error_of(const std::string& text) {
  try {
    (void)Sweep("s.yaml", text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

void expect_error(const std::string& text, const std::string& begin, const std::string& part) {
  const std::string error = error_of(text);
  EXPECT_TRUE(error.starts_with(begin)) << error;
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

using Values = std::vector<std::string>;

TEST(Sweep, NumbersCombinationsFirstKeySlowestSchedulesFastest) {
  const Sweep sweep("s.yaml", kSmallSweep);
  EXPECT_EQ(sweep.settings(), 6U);
  EXPECT_EQ(sweep.points(), 12U);
  EXPECT_EQ(sweep.keys(), (Values{"cost.forward", "batch.num_microbatches"}));
  EXPECT_EQ(sweep.values(0), (Values{"10 ms", "2"}));
  EXPECT_EQ(sweep.values(sweep.setting(11)), (Values{"12.5 ms", "4"}));
  EXPECT_EQ(sweep.schedule(11), 1U);
  const Scenario scenario = read_scenario(sweep.source(4, 1));
  EXPECT_EQ(scenario.cost.forward.front(), Seconds(12.5e-3));
  EXPECT_EQ(scenario.batch.microbatches, 3);
  ASSERT_EQ(scenario.schedules.size(), 1U);
  EXPECT_EQ(scenario.schedules.front().name, "interleaved-1f1b");
}

TEST(Sweep, RefusesMorePointsThanAnyoneMeantUnlessTheyAreAllowed) {
  const std::string many =
      "sweep:\n  grid:\n    cost.forward: {from: 1 ms, to: 1000 ms, step: 1 ms}\n"
      "    cost.backward_input: {from: 1 ms, to: 1000 ms, step: 1 ms}\n"
      "    batch.num_microbatches: {from: 2, to: 400, step: 1}\n";
  expect_error(with_section(many), "s.yaml:", "798000000 points, with about 319.57 GiB of results");
  const std::string few = "sweep:\n  grid: {batch.num_microbatches: [2, 3, 4]}\n  max_points: ";
  EXPECT_EQ(error_of(with_section(few + "6\n")), "none");
  expect_error(with_section(few + "5\n"), "s.yaml:", "max_points: 5 is the most that it allows");
}

TEST(Sweep, RangesAreExactDecimalsAndIncludeTheirEnds) {
  const Sweep sweep("s.yaml",
                    with_section("sweep:\n  grid:\n"
                                 "    cost.forward: {from: 0.1 ms, to: 0.5 ms, step: 0.1 ms}\n"
                                 "    batch.num_microbatches: {from: 2, to: 20, times: 3}\n"));
  EXPECT_EQ(sweep.settings(), 15U);
  std::set<std::string> forward;
  for (const std::string& value : column(sweep, 0)) forward.insert(value);
  EXPECT_EQ(forward, (std::set<std::string>{"0.1 ms", "0.2 ms", "0.3 ms", "0.4 ms", "0.5 ms"}));
  EXPECT_EQ(sweep.values(2)[1], "18");
}

TEST(Sweep, ZippedKeysAdvanceTogether) {
  const Sweep sweep("s.yaml", with_section("sweep:\n  zip:\n    cost.forward: [1 ms, 2 ms]\n"
                                           "    cost.backward_input: [3 ms, 4 ms]\n"));
  EXPECT_EQ(sweep.settings(), 2U);
  EXPECT_EQ(sweep.values(1), (Values{"2 ms", "4 ms"}));
}

TEST(Sweep, ZippedAndDrawnValuesMayRepeat) {
  EXPECT_EQ(
      error_of(with_section("sweep:\n  zip:\n    cost.forward: [1 ms, 1 ms]\n"
                            "    cost.backward_input: [3 ms, 4 ms]\n"
                            "  draw: {seed: 1, count: 4, keys: {cost.transfer: [0, 0, 1 ms]}}\n")),
      "none");
}

TEST(Sweep, DrawsFollowFromTheSeedAlone) {
  const std::string section =
      "sweep:\n  draw:\n    seed: 7\n    count: 3\n    keys:\n"
      "      cost.forward: {from: 10 ms, to: 20 ms}\n      batch.num_microbatches: {from: 2, to: "
      "9}\n"
      "      batch.micro_batch_size: [1, 2, 4]\n";
  const Sweep sweep("s.yaml", with_section(section));
  // The same on every machine: a change of these numbers changes published sweeps.
  EXPECT_EQ(column(sweep, 0), (Values{"17.54386 ms", "18.91914 ms", "18.32523 ms"}));
  EXPECT_EQ(column(sweep, 1), (Values{"9", "3", "9"}));
  EXPECT_EQ(column(sweep, 2), (Values{"1", "1", "1"}));
}

TEST(Sweep, ValuesMayBeListsOfTheScenario) {
  const Sweep sweep("s.yaml",
                    with_section("sweep:\n  grid:\n    cost.forward: [[1 ms, 2 ms], 3 ms]\n"));
  EXPECT_EQ(column(sweep, 0), (Values{"[1 ms, 2 ms]", "3 ms"}));
  EXPECT_EQ(read_scenario(sweep.source(0, 0)).cost.forward.size(), 2U);
}

TEST(Sweep, AKeyNamesTheResolvedScenarioNotTheFile) {
  const Sweep sweep("s.yaml", kSmallSweep);
  const std::string written_otherwise = with_section(
      "sweep: {grid: {batch.num-microbatches: [4], cost.forward: [12.5 ms]}}  # a comment\n");
  const Sweep other("other.yaml", written_otherwise);
  EXPECT_EQ(sweep.key(sweep.source(5), 1), other.key(other.source(0), 1));
  std::set<Fingerprint> keys;
  for (std::uint32_t point = 0; point < sweep.points(); ++point) {
    keys.insert(sweep.key(sweep.source(sweep.setting(point)), sweep.schedule(point)));
  }
  EXPECT_EQ(keys.size(), sweep.points());
  EXPECT_NE(sweep.identity(), other.identity());
}

TEST(Sweep, AnotherOrderOfKeysIsAnotherSweep) {
  const Sweep one(
      "s.yaml",
      with_section(
          "sweep: {grid: {cost.forward: [1 ms, 2 ms], batch.num_microbatches: [2, 4]}}\n"));
  const Sweep two(
      "s.yaml",
      with_section(
          "sweep: {grid: {batch.num_microbatches: [2, 4], cost.forward: [1 ms, 2 ms]}}\n"));
  EXPECT_NE(one.identity(), two.identity());
}

class SweepFiles : public testing::Folder {};

TEST_F(SweepFiles, KeysChangeWithTheFilesThatTheScenarioNames) {
  const auto key = [this](const std::string& program) {
    write("program.csv", program);
    const Sweep sweep(
        path("s.yaml"),
        "schedule: [{csv: program.csv}]\n"
        "parallel: {pipeline_model_parallel_size: 1}\nbatch: {num_microbatches: 1}\n"
        "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n"
        "sweep: {grid: {cost.transfer: [1 ms]}}\n");
    return sweep.key(sweep.source(0), 0);
  };
  EXPECT_EQ(key("0F0,0B0\n"), key("0F0,0B0\n"));
  EXPECT_NE(key("0F0,0B0\n"), key("0F0,0I0,0W0\n"));
}

TEST(Sweep, OverridesReplaceWhatIsNotSwept) {
  const Location where{"command line", 1, 9, "pipesim cost.backward_input=1 ms"};
  const Sweep sweep("s.yaml", kSmallSweep, {{"cost.backward_input", "1 ms", where}});
  EXPECT_EQ(read_scenario(sweep.source(0)).cost.backward_input.front(), Seconds(1e-3));
  EXPECT_NE(sweep.identity(), Sweep("s.yaml", kSmallSweep).identity());
  EXPECT_THROW(Sweep("s.yaml", kSmallSweep, {{"cost.forward", "1 ms", where}}), InputError);
}

TEST(Sweep, AKeyThatNoSettingUnderstandsIsOneErrorAtItsLine) {
  expect_error(with_section("sweep:\n  grid:\n    cost.forwrd: [1 ms, 2 ms]\n"),
               "s.yaml:7:5: ", "did you mean 'forward'?");
  expect_error(
      with_section("sweep:\n  grid:\n    batch.num_microbatches: {from: 2, to: 4, step: 1}\n"
                   "    cost.forwrd: {from: 1 ms, to: 2 ms, step: 1 ms}\n"),
      "s.yaml:8:5: ", "did you mean 'forward'?");
  expect_error(with_section("sweep: {zip: {csot.forward: [1 ms]}}\n"),
               "s.yaml:5:15: ", "did you mean 'cost'?");
  // An error of a value is located at the value.
  expect_error(with_section("sweep: {grid: {cost.forward: [1, 2]}}\n"), "s.yaml:5:31: ", "no unit");
  std::string misspelt = kSmallSweep;
  misspelt.replace(misspelt.find("1f1b"), 4, "1f1x");
  expect_error(misspelt, "s.yaml:1:", "'1f1x' is not known");
}

TEST(Sweep, AKeyOfTheCommandLineIsLocatedThere) {
  const std::string line = "pipesim sweep s.yaml sweep={grid: {cost.forwrd: [1 ms]}}";
  try {
    (void)Sweep("s.yaml", kSmallSweep,
                {{"sweep", "{grid: {cost.forwrd: [1 ms]}}", {"command line", 1, 22, line}}});
    FAIL() << "read";
  } catch (const InputError& error) {
    EXPECT_EQ(error.where().file, "command line");
    EXPECT_EQ(error.where().column, 28);
    EXPECT_EQ(error.where().text.view(), line);
  }
}

TEST(Sweep, AValueThatSomeSettingsRefuseIsNoError) {
  EXPECT_EQ(error_of(with_section("sweep: {grid: {cost.forward: [12, 10 ms]}}\n")), "none");
}

TEST(Sweep, SaysWhatIsWrongWithItsSection) {
  expect_error(with_section(""), "s.yaml:1:", "'sweep' is missing");
  expect_error(with_section("sweep: {gird: {cost.forward: [1 ms]}}\n"),
               "s.yaml:5:", "did you mean 'grid'?");
  expect_error(with_section("sweep: {grid: {cost.forward: 1 ms}}\n"),
               "s.yaml:5:", "a list of values");
  expect_error(with_section("sweep: {grid: {cost.forward: []}}\n"),
               "s.yaml:5:", "at least one value");
  expect_error(with_section("sweep: {grid: {}}\n"), "s.yaml:5:15: ", "at least one key");
  expect_error(with_section("sweep: {grid: {cost.forward: [1 ms, 2 ms, 1 ms]}}\n"),
               "s.yaml:5:43: ", "there twice");
  expect_error(with_section("sweep: {}\n"), "s.yaml:5:8: ", "expected what to sweep");
  expect_error(with_section("sweep: {grid: {schedule: [1f1b]}}\n"), "s.yaml:5:", "list them there");
  expect_error(with_section("sweep: {grid: {cost..forward: [1 ms]}}\n"),
               "s.yaml:5:16: ", "path.to.key");
  expect_error(with_section("sweep: {grid: {cost: [1 ms], cost.forward: [1 ms]}}\n"),
               "s.yaml:5:", "within the other");
  expect_error(with_section("sweep: {grid: {cost.forward: [1 ms]}, zip: {cost.forward: [1 ms]}}\n"),
               "s.yaml:5:", "swept twice");
  expect_error(with_section("sweep: {zip: {cost.forward: [1 ms], cost.transfer: [1 ms, 2 ms]}}\n"),
               "s.yaml:5:", "2 values, but cost.forward has 1");
  expect_error(with_section("sweep: {grid: {cost.forward: {from: 1 ms, to: 2 s, step: 1 ms}}}\n"),
               "s.yaml:5:", "its unit is 's', that of 'from' is 'ms'");
  expect_error(with_section("sweep: {grid: {cost.forward: {from: 3 ms, to: 2 ms, step: 1 ms}}}\n"),
               "s.yaml:5:", "'from' is greater than 'to'");
  expect_error(with_section("sweep: {grid: {cost.forward: {from: 1 ms, to: 2 ms, step: 0 ms}}}\n"),
               "s.yaml:5:", "greater than 0");
  expect_error(with_section("sweep: {grid: {cost.forward: {from: 1 ms, to: 2 ms}}}\n"),
               "s.yaml:5:", "{from, to, step} or {from, to, times}");
  expect_error(
      with_section("sweep: {draw: {count: 3, keys: {cost.forward: {from: 1 ms, to: 2 ms}}}}\n"),
      "s.yaml:5:", "'seed' is missing");
}

}  // namespace
}  // namespace pipesim::sweep_test
