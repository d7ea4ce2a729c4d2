// The residuals behind bands and plans are the simulator's present errors on the measured runs.
#include <gtest/gtest.h>

#include "tests/folder.h"
#include "validate/papers/runs/runs.h"
#include "validate/papers/schedule_runs.h"

namespace pipesim::residuals_test {
namespace {

TEST(Residuals, AreThoseOfToday) {
  const std::string source = PIPESIM_SOURCE_DIR;
  const TrainingRuns all = compare_measured_runs(source + "/validate/papers", {});
  EXPECT_EQ(residuals_csv(all), testing::read_file(source + "/models/catalog/residuals.csv"))
      << "pipesim validate runs --residuals models/catalog/residuals.csv writes them anew";
}

TEST(ScheduleRuns, AreThoseOfToday) {
  const std::string source = PIPESIM_SOURCE_DIR;
  std::vector<Compared> all;
  for (const Validation& validation : validations()) {
    if (validation.name == "runs" || validation.name == "search") continue;
    all.push_back({&validation, validation.compare(source + "/validate/papers", {})});
  }
  EXPECT_EQ(schedule_runs_csv(schedule_runs_of(all)),
            testing::read_file(source + "/models/catalog/schedule_runs.csv"))
      << "pipesim validate --schedule-runs FILE writes them anew";
}

}  // namespace
}  // namespace pipesim::residuals_test
