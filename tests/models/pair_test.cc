#include "models/pair.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace pipesim::pair_test {
namespace {

using Forwards = std::vector<ForwardParts>;
using Backwards = std::vector<BackwardParts>;

Forwards forwards(size_t layers, double compute, double exchange) {
  const Seconds c(compute);
  const Seconds a(exchange);
  return Forwards(layers, {c, a, c, a});
}

Backwards backwards(size_t layers, double compute, double exchange) {
  const Seconds c(compute);
  const Seconds a(exchange);
  return Backwards(layers, {a, c, a, c, c, c});
}

double total(const Forwards& f, const Backwards& b, const PairOptions& options = {}) {
  return pair_times(f, b, options).total.value();
}

constexpr PairOptions kDelayed{.delay_weight = true};

TEST(Pair, TakesItsSumWithoutAnExchange) {
  for (const size_t layers : {1, 2, 5}) {
    const double sum = static_cast<double>(layers) * (2 * 3 + 4 * 3);
    EXPECT_EQ(total(forwards(layers, 3, 0), backwards(layers, 3, 0)), sum);
    EXPECT_EQ(total(forwards(layers, 3, 0), backwards(layers, 3, 0), {.exchange_share = 0.5}), sum);
  }
}

TEST(Pair, TakesTheSumOfOnePassWithoutTheOther) {
  EXPECT_EQ(total(forwards(3, 5, 2), {}), 3 * (2 * 5 + 2 * 2));
  EXPECT_EQ(total({}, backwards(3, 5, 2)), 3 * (4 * 5 + 2 * 2));
  EXPECT_EQ(total({}, {}), 0);
}

// Delayed weight gradients run while tokens are on their way, if only their own pass's.
TEST(Pair, HidesADispatchBehindItsOwnDelayedWeightGradients) {
  EXPECT_EQ(total({}, backwards(1, 5, 2), kDelayed), 4 * 5 + 2);
}

// By hand: dC 0-2 beside A 0-10, dM 10-30, D 10-12, dD 30-32 beside M 30-40, C 40-42 beside dA.
TEST(Pair, HidesAnExchangeThatIsShort) {
  EXPECT_EQ(total(forwards(1, 10, 2), backwards(1, 10, 2)), 10 + 20 + 10 + 20);
  // With several layers nothing waits either: all that computes.
  EXPECT_EQ(total(forwards(4, 10, 2), backwards(4, 10, 2)), 4 * 60);
}

// dC 0-9 | dM 9-11 | D 9-18, dD 18-27 | M 18-19, C 27-36 | dA 27-29.
TEST(Pair, WaitsForAnExchangeThatIsLong) {
  const PairTimes times = pair_times(forwards(1, 1, 9), backwards(1, 1, 9), {});
  EXPECT_EQ(times.total, Seconds(36));
  EXPECT_EQ(times.forward_ready, Seconds(36));
  EXPECT_EQ(times.backward_ready, Seconds(29));
}

TEST(Pair, IsBoundByTheExchangeWhereThatIsAllThereIs) {
  EXPECT_EQ(total(forwards(3, 0, 7), backwards(3, 0, 7)), 3 * 4 * 7);
}

// 2 s of exchange beside compute at three quarters of its rate leave half a second undone.
TEST(Pair, SlowsWhatIsComputedBesideAnExchange) {
  const PairOptions quarter{.exchange_share = 0.25};
  EXPECT_EQ(total(forwards(4, 10, 2), backwards(4, 10, 2), quarter), 4 * (60 + 0.25 * 4 * 2));
}

TEST(Pair, RunsTheRestOfTheLongerPassAlone) {
  const double both = total(forwards(2, 10, 2), backwards(2, 10, 2));
  EXPECT_EQ(total(forwards(5, 10, 2), backwards(2, 10, 2)), both + 3 * (2 * 10 + 2 * 2));
  EXPECT_EQ(total(forwards(2, 10, 2), backwards(5, 10, 2)), both + 3 * (4 * 10 + 2 * 2));
}

TEST(Pair, GainsByDelayedWeightGradientsWhereTheGradientsDispatchIsLong) {
  // The forward's dispatch is what is long: M waits for it either way.
  const Forwards f{{Seconds(4), Seconds(12), Seconds(5), Seconds(3)}};
  const Backwards b{{Seconds(3), Seconds(6), Seconds(3), Seconds(4), Seconds(5), Seconds(4)}};
  // A 0-4, dM 4-15, D 4-16, M 16-21, dD 16-19, C 21-24, dA 21-29.
  EXPECT_EQ(total(f, b), 29);
  // A 0-4, dM 4-10, D 4-16, wM 10-15, dD 16-19, M 16-21, C 21-24, dA 21-25, wA 25-29.
  EXPECT_EQ(total(f, b, kDelayed), 29);
  // The gradient's dispatch is what is long: it leaves before wM.
  const Backwards waits{{Seconds(3), Seconds(6), Seconds(20), Seconds(4), Seconds(9), Seconds(4)}};
  const Forwards quick{{Seconds(4), Seconds(1), Seconds(5), Seconds(3)}};
  // dM 4-19, dD 19-39, dA 39-47.
  EXPECT_EQ(total(quick, waits), 47);
  // dM 4-10, dD 10-30, wM 10-19, M 19-24, dA 30-34, wA 34-38.
  EXPECT_EQ(total(quick, waits, kDelayed), 38);
}

TEST(Pair, ReleasesAttentionEarly) {
  // A 0-10, dM 10-30, dD 30-32, dA 32-52, M 52-62, C 62-64.
  const PairTimes times =
      pair_times(forwards(1, 10, 2), backwards(1, 10, 2), {.early_attention = true});
  EXPECT_EQ(times.backward_ready, Seconds(52));
  EXPECT_EQ(times.total, Seconds(64));
}

TEST(Pair, StaysWithinItsBounds) {
  std::mt19937 random(20260219);
  const auto seconds = [&] { return Seconds(static_cast<double>(random() % 40)); };
  for (int i = 0; i < 5000; ++i) {
    Forwards f(random() % 5);
    for (auto& each : f) each = {seconds(), seconds(), seconds(), seconds()};
    Backwards b(random() % 5);
    for (auto& each : b) {
      each = {seconds(), seconds(), seconds(), seconds(), seconds(), seconds()};
    }
    const PairOptions options{.delay_weight = random() % 2 == 0,
                              .early_attention = random() % 2 == 0,
                              .exchange_share = static_cast<double>(random() % 4) / 8};
    const PairTimes times = pair_times(f, b, options);
    const PairBounds bounds = pair_bounds(f, b, options);
    ASSERT_GE(times.total.value(), bounds.least.value() - 1e-9) << i;
    ASSERT_LE(times.total.value(), bounds.most.value() + 1e-9) << i;
    ASSERT_LE(std::max(times.forward_ready, times.backward_ready), times.total) << i;
  }
}

}  // namespace
}  // namespace pipesim::pair_test
