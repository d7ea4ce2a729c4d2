// Bands beside simulated times: ranges, digits, and what is said where there is none.
#include "sim/report/text/band.h"

#include <gtest/gtest.h>

namespace pipesim::band_test {
namespace {

Band wide() {
  return {.low = 0.9, .high = 1.3, .difference = 0.1, .rows = 12, .group = "h100 bf16"};
}
Band narrow() { return {.low = 0.98, .high = 1.04, .rows = 1, .group = "h100 fp8"}; }

Band between(double low, double high) {
  Band band = wide();
  band.low = low;
  band.high = high;
  return band;
}

TEST(BandText, DigitsFollowTheBand) {
  EXPECT_EQ(digits_of(wide()), 2);
  EXPECT_EQ(digits_of(narrow()), 3);
  EXPECT_EQ(digits_of(between(0.999, 1.001)), 4);
  EXPECT_EQ(digits_of(between(0.1, 6)), 2);
  EXPECT_EQ(digits_of(std::nullopt), 3);
  EXPECT_EQ(compared_digits(narrow()), 4);
}

TEST(BandText, SignificantDigitsRoundAndGroupThousands) {
  EXPECT_EQ(significant(1234567, 3), "1,230,000");
  EXPECT_EQ(significant(0.012345, 3), "0.0123");
  EXPECT_EQ(significant(999.6, 3), "1,000");
  EXPECT_EQ(significant(16.436, 3), "16.4");
  EXPECT_EQ(significant(-1234.5, 2), "-1,200");
  EXPECT_EQ(significant(0, 3), "0");
  EXPECT_EQ(human(Seconds(0.0123456), 3), "12.3 ms");
  EXPECT_EQ(human(Seconds(93.4), 2), "93 s");
}

TEST(BandText, RatesFallAsTimeGrows) {
  EXPECT_EQ(
      range_text(narrow(), {.iteration = Seconds(10),
                            .tokens_per_second_per_gpu = 1000,
                            .mfu = 0.5,
                            .days = 30,
                            .price = 1234567}),
      "9.80 to 10.4 s, 962 to 1,020 tokens/s/GPU, MFU 48.1% to 51.0%, days 29.4 to 31.2, price "
      "1,210,000 to 1,280,000");
}

TEST(BandText, SaysWhatItRestsOnOrThatNothingIsNear) {
  Scenario scenario;
  EXPECT_EQ(band_line(scenario, "1f1b takes", {.iteration = Seconds(1)}), "");
  scenario.roofline.emplace();
  EXPECT_NE(band_line(scenario, "1f1b", {.iteration = Seconds(1)}).find("no measured run near"),
            std::string::npos);
  scenario.band = wide();
  EXPECT_EQ(band_line(scenario, "1f1b", {.iteration = Seconds(1)}),
            "80% band from 12 measured runs (h100 bf16): 1f1b 900 to 1,300 ms\n");
}

}  // namespace
}  // namespace pipesim::band_test
