#include "models/memory_fit.h"

#include <gtest/gtest.h>

namespace pipesim {
namespace {

TEST(MemoryFit, IsTightWhereTheCapacityLiesInsideTheBand) {
  constexpr MemoryBand kBand{.low = 0.5, .high = 2};
  EXPECT_EQ(fit_of(Bytes(4), kBand, Bytes(8)), MemoryFit::kYes);
  EXPECT_EQ(fit_of(Bytes(5), kBand, Bytes(8)), MemoryFit::kTight);
  EXPECT_EQ(fit_of(Bytes(16), kBand, Bytes(8)), MemoryFit::kTight);
  EXPECT_EQ(fit_of(Bytes(17), kBand, Bytes(8)), MemoryFit::kNo);
}

TEST(MemoryFit, IsYesOrNoWithoutABand) {
  EXPECT_EQ(fit_of(Bytes(8), {}, Bytes(8)), MemoryFit::kYes);
  EXPECT_EQ(fit_of(Bytes(9), {}, Bytes(8)), MemoryFit::kNo);
}

}  // namespace
}  // namespace pipesim
