// Bands in figures: between schedules of one setting that of their difference, else that of the
// time.
#include <gtest/gtest.h>

#include "tests/app/command.h"

namespace pipesim::bands_test {
namespace {

class FigureBands : public testing::Command {};

TEST_F(FigureBands, StandAroundDifferencesToTheFastestOfASetting) {
  testing::write_file(folder_ / "t.csv",
                      "batch.num_microbatches,schedule,iteration_seconds,iteration_low_seconds,"
                      "iteration_high_seconds\n"
                      "8,zb-h1,1,0.9,1.2\n"
                      "8,1f1b,1.1,0.99,1.32\n"
                      "16,1f1b,2,1.8,2.4\n");
  ASSERT_EQ(run("list metrics --json metrics.json").code, 0);
  const std::string plots = std::string(PIPESIM_SOURCE_DIR) + "/plots";
  const testing::Outcome bands =
      shell("python3 -B -c \"import sys; sys.path.insert(0, '" + plots +
            "'); import dataclasses, tables\n"
            "tables.use_metrics('metrics.json')\n"
            "table = dataclasses.replace(tables.read_table('t.csv'), differences=(0.03, 0.2))\n"
            "for row in table.rows: print('%.4f %.4f' % table.band(row, 'iteration_seconds'))\"");
  ASSERT_EQ(bands.code, 0) << bands.output;
  // 1.1 / 1 is off by exp(0.03 + 0.2 ln 1.1); the fastest is the measure, and 16 has no other.
  EXPECT_EQ(bands.output, "1.0000 1.0000\n1.0473 1.1553\n1.8000 2.4000\n");
}

}  // namespace
}  // namespace pipesim::bands_test
