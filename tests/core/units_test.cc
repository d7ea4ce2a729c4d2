#include "sim/core/units.h"

#include <concepts>
#include <gtest/gtest.h>

namespace pipesim::units_test {
namespace {

template <class A, class B>
concept CanBeAdded = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept CanBeCompared = requires(A a, B b) {
  a < b;
};

static_assert(CanBeAdded<Seconds, Seconds>);
static_assert(!CanBeAdded<Seconds, Bytes>);
static_assert(!CanBeAdded<Seconds, double>);
static_assert(!CanBeCompared<Bytes, Flops>);
static_assert(!std::convertible_to<double, Seconds>, "a bare number has no unit");
static_assert(!std::convertible_to<Seconds, double>);
static_assert(std::same_as<decltype(Bytes(1) / Seconds(1)), BytesPerSecond>);
static_assert(std::same_as<decltype(Bytes(1) / BytesPerSecond(1)), Seconds>);
static_assert(std::same_as<decltype(Flops(1) / Seconds(1)), FlopsPerSecond>);
static_assert(std::same_as<decltype(Watts(1) * Seconds(1)), Joules>);
static_assert(std::same_as<decltype(Bytes(1) / Bytes(1)), double>, "a ratio is a plain number");
static_assert(std::same_as<decltype(Seconds(2) * (BytesPerSecond(1) / Bytes(1))), double>);
static_assert(sizeof(Seconds) == sizeof(double));

TEST(Units, CalculateLikeTheirNumbers) {
  EXPECT_EQ(Seconds(2) + Seconds(3), Seconds(5));
  EXPECT_EQ(Seconds(2) - Seconds(3), -Seconds(1));
  EXPECT_EQ(3 * Seconds(2), Seconds(2) * 3);
  EXPECT_EQ(Seconds(3) / 2, Seconds(1.5));
  EXPECT_EQ(Bytes(100) / BytesPerSecond(50), Seconds(2));
  EXPECT_EQ(Seconds(3) / Seconds(2), 1.5);
  EXPECT_EQ(Watts(300) * Seconds(2), Joules(600));
  EXPECT_LT(Seconds(1), Seconds(2));
  Bytes sum;
  sum += Bytes(3);
  sum -= Bytes(1);
  EXPECT_EQ(sum.value(), 2);
}

TEST(Units, CountAGibibyteInPowersOfTwo) { EXPECT_EQ(kGiB.value(), 1073741824.0); }

}  // namespace
}  // namespace pipesim::units_test
