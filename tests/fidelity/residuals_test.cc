// What bands and plans rest on is what the simulator makes of the measured runs now.
#include <gtest/gtest.h>

#include "tests/folder.h"
#include "validate/papers/runs/runs.h"

namespace pipesim {
namespace {

TEST(Residuals, AreThoseOfToday) {
  const std::string source = PIPESIM_SOURCE_DIR;
  const TrainingRuns all = compare_measured_runs(source + "/validate/papers", {});
  EXPECT_EQ(residuals_csv(all), testing::read_file(source + "/models/catalog/residuals.csv"))
      << "pipesim validate runs --residuals models/catalog/residuals.csv writes them anew";
}

}  // namespace
}  // namespace pipesim
