// Bands of differences between schedules: what they are learned from, and that they hold.
#include "sim/band/difference.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "tests/folder.h"

namespace pipesim::difference_test {
namespace {

ScheduleRun run(const std::string& model, const std::string& setting, const std::string& schedule,
                double published, double simulated) {
  return {"paper", model, setting, schedule, published, simulated};
}

// Models whose schedules are up to 30% apart, each off by 2% and a tenth of what it gains.
std::vector<ScheduleRun> drawn(int models, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> gain(0, 0.3);
  std::normal_distribution<double> off(0, 1);
  std::vector<ScheduleRun> runs;
  for (int model = 0; model < models; ++model) {
    for (const char* setting : {"a", "b"}) {
      for (const char* schedule : {"1f1b", "zb", "v-half", "v-min", "gis"}) {
        const double gained = gain(random);
        const double wrong = (0.02 + 0.1 * gained) * off(random);
        runs.push_back(run(std::to_string(model), setting, schedule, std::exp(gained + wrong),
                           std::exp(gained)));
      }
    }
  }
  return runs;
}

TEST(DifferenceBand, HoldsFourFifthsOfPairsOfModelsThatAreLeftOut) {
  double pairs = 0;
  double held = 0;
  for (unsigned seed = 0; seed < 8; ++seed) {
    const auto runs = drawn(10, seed);
    const DifferenceCoverage all = coverage_of(runs, runs).back();
    EXPECT_EQ(all.group, "all");
    EXPECT_EQ(all.pairs, 10U * 2 * 10);
    pairs += static_cast<double>(all.pairs);
    held += static_cast<double>(all.held);
  }
  EXPECT_GT(held / pairs, 0.75);
  EXPECT_LT(held / pairs, 0.87);
}

TEST(DifferenceBand, OfWhatIsOffAlikeIsNothing) {
  std::vector<ScheduleRun> runs;
  for (const double speed : {1.0, 1.3, 1.7}) {
    runs.push_back(run("m", "s", std::to_string(speed), 0.8 * speed, speed));
    runs.push_back(run("n", "s", std::to_string(speed), 1.3 * speed, speed));
  }
  const auto band = difference_band(runs);
  ASSERT_TRUE(band);
  EXPECT_EQ(band->pairs, 6U);
  EXPECT_EQ(band->groups, 2U);
  EXPECT_NEAR(band->high(1.5), 1, 1e-9);
  EXPECT_FALSE(band->tied(1.001));
}

TEST(DifferenceBand, GrowsWithTheDifferenceWhereErrorsDo) {
  // The gain is measured a fifth smaller than simulated, whatever it is.
  std::vector<ScheduleRun> runs;
  for (int i = 0; i < 6; ++i) {
    const double gain = 0.05 * i;
    runs.push_back(run("m", "s", std::to_string(i), std::exp(0.8 * gain), std::exp(gain)));
  }
  const auto band = difference_band(runs);
  ASSERT_TRUE(band);
  EXPECT_NEAR(band->base, 0, 1e-6);
  EXPECT_NEAR(band->share, 0.2, 1e-6);
  EXPECT_NEAR(std::log(band->high(std::exp(0.1))), std::sqrt(2.0) * 0.02, 1e-6);
}

TEST(DifferenceBand, TellsApartBeyondWhatItSays) {
  const DifferenceBand band{.base = 0.03, .share = 0.25, .pairs = 9, .groups = 8};
  const double least = band.least_told_apart();
  EXPECT_TRUE(band.tied(1));
  EXPECT_TRUE(band.tied(1 + 0.999 * least));
  EXPECT_FALSE(band.tied(1 + 1.001 * least));
  EXPECT_FALSE(band.tied(1 / (1 + 1.001 * least)));
  EXPECT_TRUE(std::isinf(DifferenceBand{.base = 0.03, .share = 1, .groups = 1}.least_told_apart()));
}

TEST(DifferenceBand, PairsRunsOfOneSettingWithOtherSchedulesOnly) {
  const std::vector<ScheduleRun> none{run("m", "s", "1f1b", 1, 1), run("m", "s", "1f1b", 2, 1),
                                      run("m", "t", "zb", 3, 1), run("n", "s", "zb", 4, 1)};
  EXPECT_FALSE(difference_band(none));
  EXPECT_TRUE(coverage_of(none, none).empty());
}

TEST(ScheduleRuns, AreReadByTheirColumns) {
  const auto runs = parse_schedule_runs(
      "paper,model,setting,schedule,published_speed,simulated_speed\np,m,\"a, b\",zb,2,1.5\n",
      "r.csv");
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(group_of(runs[0]), "p m");
  EXPECT_EQ(runs[0].setting, "a, b");
  EXPECT_EQ(runs[0].simulated_speed, 1.5);
  const auto refused = [](const std::string& text) { (void)parse_schedule_runs(text, "r.csv"); };
  EXPECT_THROW(refused("paper,model\n"), InputError);
  EXPECT_THROW(
      refused("paper,model,setting,schedule,published_speed,simulated_speed\np,m,s,zb,0,1"),
      InputError);
}

}  // namespace
}  // namespace pipesim::difference_test
