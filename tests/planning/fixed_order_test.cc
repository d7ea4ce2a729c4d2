// A schedule that says that its order is fixed must plan the same whatever it costs.
#include <algorithm>
#include <gtest/gtest.h>

#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::fixed_order_test {
namespace {

Problem drawn(testing::Random& random, const Schedule& schedule, int devices, int microbatches) {
  const Shape shape{devices, schedule.default_chunks, microbatches, schedule.default_splits};
  Problem problem =
      testing::random_problem(random, shape, schedule.place(devices, shape.chunks), random.coin());
  if (random.coin()) {  // equal stages, as most scenarios have them
    std::ranges::fill(problem.stages, problem.stages.front());
    testing::set_transfers(problem, random.coin() ? random.real(0, 5) : 0);
  }
  if (random.coin()) problem.activation_limit = Bytes(random.real(100, 1000));
  return for_planning(std::move(problem));
}

bool same(const Program& a, const Program& b) {
  for (int d = 0; d < a.shape().devices; ++d) {
    if (!std::ranges::equal(a.passes(d), b.passes(d))) return false;
  }
  return std::ranges::equal(a.pairs(), b.pairs(),
                            [](const OverlappedPair& x, const OverlappedPair& y) {
                              return x.forward == y.forward && x.backward == y.backward;
                            }) &&
         a.wrap_around() == b.wrap_around() && a.vocabulary() == b.vocabulary() &&
         (a.copies() != nullptr) == (b.copies() != nullptr);
}

TEST(FixedOrder, IsThatOfEveryCost) {
  testing::Random random(81);
  size_t compared = 0;
  for (const Schedule* schedule : schedules()) {
    for (const int p : {2, 4, 6}) {
      for (const int m : {p, 2 * p, 4 * p, 8 * p}) {
        const Problem first = drawn(random, *schedule, p, m);
        if (!schedule->fixed_order(first) || schedule->refusal(first)) continue;
        const Program program = schedule->plan(first);
        for (int round = 0; round < 10; ++round) {
          const Problem other = drawn(random, *schedule, p, m);
          EXPECT_TRUE(schedule->fixed_order(other)) << "decided by the shape alone";
          if (schedule->refusal(other)) continue;
          EXPECT_TRUE(same(program, schedule->plan(other)))
              << schedule->name << " p " << p << " m " << m;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 1000U);
}

TEST(FixedOrder, IsNotSaidOfSchedulesThatFollowCosts) {
  testing::Random random(82);
  for (const char* name : {"zb-1p", "zb-2p", "zb", "zb-v", "v-search", "gis", "best"}) {
    const Schedule& schedule = *find_schedule(name);
    EXPECT_FALSE(schedule.fixed_order(drawn(random, schedule, 4, 16))) << name;
  }
  const Schedule& half = *find_schedule("v-half");
  EXPECT_TRUE(half.fixed_order(drawn(random, half, 4, 16)));
  EXPECT_TRUE(half.fixed_order(drawn(random, half, 4, 4))) << "no steady part";
}

}  // namespace
}  // namespace pipesim::fixed_order_test
