// The slowest of many GPUs.
#include "models/slowest.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numbers>

namespace pipesim {
namespace {

TEST(ExpectedMaximum, IsThatOfTheOrderStatisticsOfANormal) {
  EXPECT_NEAR(expected_maximum(1), 0, 1e-9);
  EXPECT_NEAR(expected_maximum(2), 1 / std::sqrt(std::numbers::pi), 1e-9);
  EXPECT_NEAR(expected_maximum(3), 1.5 / std::sqrt(std::numbers::pi), 1e-9);
  EXPECT_NEAR(expected_maximum(10), 1.538752730835, 1e-9);  // Harter 1961
  EXPECT_NEAR(expected_maximum(100), 2.507593639, 1e-8);
}

TEST(Slowest, GrowsWithVariationAndGpus) {
  EXPECT_EQ(slowest(0, 1 << 17), 1);
  EXPECT_NEAR(slowest(0.02, 1), 1, 1e-9);
  EXPECT_NEAR(slowest(0.02, 100), 1.0501518728, 1e-9);
  EXPECT_GT(slowest(0.02, 1 << 14), slowest(0.02, 1 << 10));
}

}  // namespace
}  // namespace pipesim
