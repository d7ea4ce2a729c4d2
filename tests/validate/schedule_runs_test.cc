// Measured speeds of schedules in papers' tables, and whether bands learned from them hold.
#include "validate/papers/schedule_runs.h"

#include <gtest/gtest.h>

#include "sim/read/band.h"
#include "tests/folder.h"

namespace pipesim::schedule_runs_test {
namespace {

Cell cell(const std::string& schedule, double published, std::optional<double> simulated) {
  Cell made;
  made.published = published;
  made.simulated = simulated;
  made.run = {"1.5B", "p=8, m=24", schedule};
  return made;
}

TEST(ScheduleRuns, AreTheSimulatedCellsOnce) {
  Cell no_run = cell("zb", 4, 4);
  no_run.run.reset();
  const std::vector<Compared> all{{&validations().front(),
                                   {cell("1f1b", 2, 2.5), cell("zb", 3, 3.25), no_run,
                                    cell("zb", 3, 3.5), cell("zb-v", 4, std::nullopt)}}};
  const auto runs = schedule_runs_of(all);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[1].simulated_speed, 3.25);
  const std::string csv = schedule_runs_csv(runs);
  EXPECT_EQ(csv,
            "paper,model,setting,schedule,published_speed,simulated_speed\n"
            "zero_bubble,1.5B,\"p=8, m=24\",1f1b,2,2.5\n"
            "zero_bubble,1.5B,\"p=8, m=24\",zb,3,3.25\n");
  EXPECT_EQ(parse_schedule_runs(csv, "r.csv")[0].setting, "p=8, m=24");
}

// The catalogue's runs, as `pipesim validate` reports them.
TEST(ScheduleRuns, OfModelsThatAreLeftOutLieInTheBandFourTimesOfFive) {
  const auto runs = catalogue_schedule_runs();
  ASSERT_FALSE(runs.empty());
  const DifferenceCoverage all = coverage_of(runs, runs).back();
  EXPECT_GE(all.pairs, 250U);
  EXPECT_GT(static_cast<double>(all.held), 0.7 * static_cast<double>(all.pairs));
  EXPECT_LT(static_cast<double>(all.held), 0.9 * static_cast<double>(all.pairs));
  const std::string text = schedule_coverage_text(runs, runs);
  EXPECT_NE(text.find("vocabulary_parallelism Table 5 8 GPUs"), std::string::npos) << text;
  EXPECT_EQ(schedule_coverage_text({}, runs), "");
}

}  // namespace
}  // namespace pipesim::schedule_runs_test
