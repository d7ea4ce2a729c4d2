// TeraPipe's dynamic programme against every way to cut a sequence.
#include "sim/planning/best_slices.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace pipesim::best_slices_test {
namespace {

using Time = std::function<SliceTime(int, int)>;

// A slice takes `fixed`, its length, and `attention` for every pair of a query and a key; to pass
// p devices alike, p - 1 times that.
Time pipeline(int p, double fixed, double attention) {
  return [=](int begin, int length) {
    const double seconds =
        fixed + length + attention * (1.0 * length * begin + 0.5 * length * length);
    return SliceTime{Seconds(seconds), Seconds((p - 1) * seconds)};
  };
}

Seconds latency_of(const std::vector<long>& lengths, int microbatches, const Time& time) {
  std::vector<SliceTime> slices;
  int begin = 0;
  for (const long length : lengths) {
    slices.push_back(time(begin, static_cast<int>(length)));
    begin += static_cast<int>(length);
  }
  return latency(slices, microbatches);
}

// Bit i of `cuts`: a slice ends behind unit i.
Seconds least_of_all(int units, int microbatches, const Time& time) {
  Seconds least(1e300);
  for (unsigned cuts = 0; cuts < 1U << (units - 1); ++cuts) {
    std::vector<long> lengths{1};
    for (int unit = 1; unit < units; ++unit) {
      if ((cuts >> (unit - 1)) & 1U) {
        lengths.push_back(1);
      } else {
        ++lengths.back();
      }
    }
    least = std::min(least, latency_of(lengths, microbatches, time));
  }
  return least;
}

TEST(BestSlices, AreNoWorseThanAnyOthers) {
  for (const int units : {1, 2, 5, 9, 12}) {
    for (const int p : {1, 2, 4, 16}) {
      for (const int microbatches : {1, 3}) {
        for (const double fixed : {0.0, 0.5, 4.0}) {
          for (const double attention : {0.0, 0.1, 2.0}) {
            const Time time = pipeline(p, fixed, attention);
            const std::vector<long> best = best_slices(units, microbatches, 1, time).front();
            EXPECT_EQ(std::accumulate(best.begin(), best.end(), 0L), units);
            EXPECT_NEAR(latency_of(best, microbatches, time).value(),
                        least_of_all(units, microbatches, time).value(), 1e-9)
                << units << " units, p " << p << ", m " << microbatches;
          }
        }
      }
    }
  }
}

// Whatever seconds are, rising with neither length nor position.
TEST(BestSlices, NeedNoRegularSeconds) {
  const Time time = [](int begin, int length) {
    const int mixed = (begin * 7 + length * 13) % 11;
    return SliceTime{Seconds(1 + mixed), Seconds(3 + (mixed * 5 + begin) % 7)};
  };
  for (int units = 1; units <= 12; ++units) {
    EXPECT_NEAR(latency_of(best_slices(units, 2, 1, time).front(), 2, time).value(),
                least_of_all(units, 2, time).value(), 1e-9);
  }
}

TEST(BestSlices, OfOneDeviceIsTheWholeWhereASliceCosts) {
  EXPECT_EQ(best_slices(8, 4, 1, pipeline(1, 0.5, 1)).front(), std::vector<long>{8});
}

TEST(BestSlices, ComeByTheirLatency) {
  const Time time = pipeline(4, 0.5, 0.1);
  const auto plans = best_slices(16, 2, 5, time);
  EXPECT_EQ(plans.size(), 5U);
  for (size_t i = 1; i < plans.size(); ++i) {
    EXPECT_NE(plans[i], plans[i - 1]);
    EXPECT_GE(latency_of(plans[i], 2, time), latency_of(plans[i - 1], 2, time));
  }
}

// Later slices attend to more, and are the shorter.
TEST(BestSlices, OfCausalAttentionAreLongestFirst) {
  const std::vector<long> best = best_slices(64, 1, 1, pipeline(8, 1, 0.2)).front();
  for (size_t i = 1; i < best.size(); ++i) EXPECT_GE(best[i - 1] + 1, best[i]) << "slice " << i;
  EXPECT_GT(best.front(), 2 * best.back());
}

}  // namespace
}  // namespace pipesim::best_slices_test
