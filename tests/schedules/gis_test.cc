// Group-interleaved 1F1B beyond its claims: every group size, few microbatches, unlike stages,
// recompute.
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>

#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::gis_test {
namespace {

const Schedule& gis() { return *find_schedule("gis"); }

Problem problem_with(const Shape& shape, long group, const testing::Times& times = {}) {
  Problem problem = testing::make_problem(shape, times);
  problem.options["group_size"] = group;
  return problem;
}

int max_in_flight(const Evaluation& result) {
  int most = 0;
  for (const DeviceEvaluation& device : result.devices) {
    most = std::max(most, device.peak_in_flight);
  }
  return most;
}

// The published order: a slot for every pass, three to a row, sorted. `rows` are those of a round.
std::vector<Pass> in_slots(const Shape& shape, int device, int group, int rows) {
  const int p = shape.devices;
  const int v = shape.chunks;
  const int apart = (rows + group - 1) / group;
  const int before_move = v / std::gcd(v, apart);
  const auto begin = [&](int chunk, int microbatch) {
    return microbatch / group * 3 * group * v + 3 * apart * group * chunk +
           3 * (microbatch % group) + 3 * group * (chunk / before_move) + device;
  };
  const int first_backward = begin(v - 1, 0) + 1 + 3 * (p - 1 - device);
  std::vector<std::pair<int, Pass>> slots;
  for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
    for (int chunk = 0; chunk < v; ++chunk) {
      slots.emplace_back(begin(chunk, microbatch), make_pass(PassKind::kF, microbatch, chunk));
      const int back = first_backward + begin(chunk, microbatch) - device;
      slots.emplace_back(back, make_pass(PassKind::kB, microbatch, v - 1 - chunk));
      slots.emplace_back(back + 1, make_pass(PassKind::kW, microbatch, v - 1 - chunk));
    }
  }
  std::ranges::sort(slots, {}, &std::pair<int, Pass>::first);
  EXPECT_EQ(std::ranges::adjacent_find(slots, {}, &std::pair<int, Pass>::first), slots.end());
  std::vector<Pass> order;
  for (const auto& [slot, pass] : slots) order.push_back(pass);
  return order;
}

TEST(Gis, RunsEveryShapeAndGroupSizeInTheOrderOfItsSlots) {
  for (int p = 1; p <= 9; ++p) {
    for (int v = 2; v <= 5; ++v) {
      for (const int m : {1, 2, 3, 5, 8, 13, 21}) {
        for (int g = 1; g <= p + 1; ++g) {
          const Problem problem = problem_with({p, v, m, 1}, g);
          const Program program = gis().plan(problem);
          SCOPED_TRACE(::testing::Message() << "p " << p << " v " << v << " m " << m << " g " << g);
          for (int device = 0; device < p; ++device) {
            EXPECT_TRUE(
                std::ranges::equal(program.passes(device),
                                   in_slots(problem.shape, device, std::min(g, p), (p + 1) / 2)));
          }
          EXPECT_GT(evaluate(program, problem).cost, Seconds(0)) << "and it can be executed";
        }
      }
    }
  }
}

TEST(Gis, HoldsLessTheSmallerTheGroupDownToHalfTheDevices) {
  for (const int p : {4, 8, 16}) {
    int held = std::numeric_limits<int>::max();
    for (int g = p; g >= p / 2; --g) {
      const Problem problem = problem_with({p, 3, 4 * p, 1}, g);
      const int now = max_in_flight(evaluate(gis().plan(problem), problem));
      EXPECT_LT(now, held) << "p " << p << " g " << g;
      held = now;
    }
    EXPECT_EQ(held, 2 * p) << "(v+1) p/2";
  }
}

// Published: 2(p-1) + (v-1)(p-g) at unit times when g divides m.
TEST(Gis, PaysForSmallerGroupsWithTheBubbleThatIsPublished) {
  for (const int p : {2, 4, 7, 8, 16}) {
    for (int v = 2; v <= 4; ++v) {
      for (int g = (p + 1) / 2; g <= p; ++g) {
        const Problem problem = problem_with({p, v, 4 * g, 1}, g);
        const Evaluation result = evaluate(gis().plan(problem), problem);
        EXPECT_EQ(result.cost - result.work, Seconds(2 * (p - 1) + (v - 1) * (p - g)))
            << "p " << p << " v " << v << " g " << g;
      }
    }
  }
}

TEST(Gis, TakesMoreRowsForARoundWhereTheSlowestStageDoesNotCoverTheWay) {
  // Forwards only: a way of 8 needs 8 rows of 1.1, and then two groups of four are in between.
  const Problem problem = problem_with({8, 2, 16, 1}, 4, {1, 0.05, 0.05, 0});
  const Program program = gis().plan(problem);
  EXPECT_TRUE(std::ranges::equal(program.passes(0), in_slots(problem.shape, 0, 4, 8)));
  EXPECT_FALSE(std::ranges::equal(program.passes(0), in_slots(problem.shape, 0, 4, 4)));
}

TEST(Gis, CanBeExecutedOnAnyStages) {
  testing::Random random(17);
  for (int i = 0; i < 500; ++i) {
    const Shape shape{random.integer(1, 9), random.integer(2, 5), random.integer(1, 20), 1};
    Problem problem = testing::random_problem(
        random, shape, Placement::looped(shape.devices, shape.chunks), false);
    problem.options["group_size"] = static_cast<long>(random.integer(1, 10));
    problem.recompute_chunks = random.coin() ? 0 : random.integer(1, shape.chunks);
    const Program program = gis().plan(problem);
    EXPECT_GT(evaluate(program, problem).cost, Seconds(0)) << "case " << i;
    for (int vs = 0; vs < program.placement().virtual_stages(); ++vs) {
      EXPECT_EQ(program.recomputes(vs), program.placement().chunk(vs) < problem.recompute_chunks);
    }
  }
}

TEST(Gis, RecomputesInGroupsOfOneWithOneActivationAtATime) {
  Problem problem = problem_with({4, 2, 8, 1}, 4);
  problem.recompute_chunks = 2;
  const Evaluation result = evaluate(gis().plan(problem), problem);
  for (const DeviceEvaluation& device : result.devices) {
    EXPECT_EQ(device.peak_activation, Bytes(1));
    EXPECT_EQ(device.busy, Seconds(64));
  }
  EXPECT_EQ(result.cost, Seconds(73)) << "the public generator's";
}

}  // namespace
}  // namespace pipesim::gis_test
