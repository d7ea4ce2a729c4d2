// The search for V-shaped building blocks against what the authors' public search finds (cost and
// peak of repository sail-sg/zero-bubble-pipeline-parallelism, v_auto_schedule.py), and `best`
// against it.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>

#include "sim/execution/evaluate.h"
#include "sim/planning/building_block.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim::v_search_test {
namespace {

constexpr testing::Times kUnit{1, 1, 1, 0};

Problem make(int p, int m, const testing::Times& times, double chunks) {
  Problem problem = testing::make_problem({p, 2, m, 1}, Placement::vee(p), times);
  problem.activation_limit = Bytes(chunks);
  return problem;
}

Evaluation search(const Problem& problem, std::string_view name = "v-search") {
  const Schedule& schedule = *find_schedule(name);
  EXPECT_FALSE(schedule.refusal(problem).has_value());
  return evaluate(schedule.plan(problem), problem);
}

struct Published {
  int p, m;
  testing::Times times;
  int limit;  // chunks, B frees nothing
  double cost;
};

TEST(VeeSearch, CostsWhatThePublicSearchDoes) {
  const Published all[] = {
      {2, 4, kUnit, 4, 24},
      {4, 8, kUnit, 5, 56},
      {4, 8, kUnit, 8, 48},
      {5, 10, {10, 11, 7, 1}, 8, 665},
      {6, 12, {10, 11, 7, 1}, 12, 740},
      // at unit times, 6 devices: bubble 17 14 11 8 5 3 0 with 6 to 12 chunks
      {6, 24, kUnit, 6, 161},
      {6, 24, kUnit, 7, 158},
      {6, 24, kUnit, 8, 155},
      {6, 24, kUnit, 9, 152},
      {6, 24, kUnit, 10, 149},
      {6, 24, kUnit, 11, 147},
      {6, 24, kUnit, 12, 144},
  };
  for (const Published& each : all) {
    SCOPED_TRACE(fmt::format("p {} m {} limit {}", each.p, each.m, each.limit));
    const Problem problem = make(each.p, each.m, each.times, each.limit);
    const Evaluation ours = search(problem);
    EXPECT_EQ(ours.cost.value(), each.cost);
    EXPECT_LE(ours.peak_activation(), *problem.activation_limit);
    EXPECT_LE(search(problem, "best").cost.value(), each.cost);
  }
}

// Below the memory that a block needs at least (4 chunks up to p = 4, then 6), the public search
// returns nothing.
TEST(VeeSearch, StartsWhereThePublicSearchDoesAndBestGoesBelow) {
  for (const auto& [p, least] : {std::pair{2, 4}, {3, 4}, {4, 4}, {5, 6}, {6, 6}}) {
    double cost = std::numeric_limits<double>::infinity();
    for (int limit = 2; limit <= least; ++limit) {
      SCOPED_TRACE(fmt::format("p {} limit {}", p, limit));
      const Problem problem = make(p, 3 * p, kUnit, limit);
      const auto refusal = find_schedule("v-search")->refusal(problem);
      EXPECT_EQ(refusal.has_value(), limit < least);
      if (refusal) {
        EXPECT_NE(refusal->reason.find(fmt::format("takes less than {};", least)),
                  std::string::npos)
            << refusal->reason;
      }
      const Evaluation ours = search(problem, "best");
      EXPECT_LE(ours.peak_activation(), *problem.activation_limit);
      EXPECT_LE(ours.cost.value(), cost);
      cost = ours.cost.value();
    }
  }
}

// The refusal knows the least limit with which some block keeps.
TEST(VeeSearch, PlansWithinEveryLimitThatItAccepts) {
  for (int p = 1; p <= (testing::kSanitized ? 4 : 9); ++p) {
    for (int m = 1; m <= 2 * p + 1; ++m) {
      BlockBuilder builder(p, m);
      const auto fits = [&](int limit) {
        return std::ranges::any_of(building_blocks(p, p), [&](const Block& block) {
          return builder.place(block) && builder.build(limit);
        });
      };
      int least = 1;
      while (!fits(least)) ++least;
      SCOPED_TRACE(fmt::format("p {} m {}", p, m));
      EXPECT_TRUE(find_schedule("v-search")->refusal(make(p, m, kUnit, least - 0.5)));
      EXPECT_LE(search(make(p, m, kUnit, least)).peak_activation(), Bytes(least));
    }
  }
}

// Every block built, the cheapest kept.
double cheapest_of_all_blocks(int p, int m, const testing::Times& times, int limit) {
  BlockBuilder builder(p, m);
  const auto size = static_cast<size_t>(kVeeKinds * p);
  VeeTimes of{std::vector<double>(size), std::vector<double>(size, times.transfer)};
  for (int d = 0; d < p; ++d) {
    for (int kind = 0; kind < kVeeKinds; ++kind) {
      of.pass[builder.id(kind, d)] = is_vee_forward(kind)  ? times.forward
                                     : is_vee_weight(kind) ? times.backward_weight
                                                           : times.backward_input;
    }
  }
  // No message comes to F0 of device 0, nor where the way turns.
  for (const int kind : {kF0, kB1, kW0, kW1}) of.message[builder.id(kind, 0)] = 0;
  for (const int kind : {kF1, kB0}) of.message[builder.id(kind, p - 1)] = 0;
  double cheapest = std::numeric_limits<double>::infinity();
  for (const Block& block : building_blocks(p, p)) {
    if (!builder.place(block) || !builder.build(limit)) continue;
    cheapest = std::min(cheapest, builder.time(of).value_or(PlanTime{}).time);
  }
  return cheapest;
}

TEST(VeeSearch, CostsWhatTheBestOfAllBlocksDoesAndBestNoMore) {
  const testing::Times all[] = {kUnit, {10, 12, 8, 0}, {10, 11, 7, 1}, {4, 10, 8, 0}, {2, 3, 7, 0}};
  const auto step = [](int p) { return (p > 7 ? 2 : 1) * (testing::kSanitized ? 5 : 1); };
  int less = 0;
  int searched = 0;
  for (const testing::Times& times : all) {
    for (const auto& [p, m] :
         {std::pair{1, 3}, {3, 7}, {4, 3}, {5, 14}, {6, 24}, {7, 7}, {8, 32}, {9, 27}, {11, 44}}) {
      for (int limit = 3; limit <= 2 * p; limit += step(p)) {
        SCOPED_TRACE(fmt::format("p {} m {} limit {} F {}", p, m, limit, times.forward));
        const double cheapest = cheapest_of_all_blocks(p, m, times, limit);
        const Problem problem = make(p, m, times, limit);
        if (find_schedule("v-search")->refusal(problem)) continue;
        EXPECT_EQ(search(problem).cost.value(), cheapest);
        const double ours = search(problem, "best").cost.value();
        EXPECT_LE(ours, cheapest);
        ++searched;
        less += ours < cheapest ? 1 : 0;
      }
    }
  }
  fmt::print("best is less in {} of {} searches\n", less, searched);
  EXPECT_GT(searched, testing::rounds(200));
  EXPECT_GT(less, searched / 2);
}

// Any stages, boundaries, bytes and limits: evaluate throws where a program deadlocks, Program
// where it is not complete.
TEST(VeeSearch, KeepsEveryLimitThatItAccepts) {
  testing::Random random(8);
  int accepted = 0;
  for (int round = 0; round < testing::rounds(200); ++round) {
    const int p = random.integer(1, 10);
    const Shape shape{p, 2, random.integer(1, 30), 1};
    Problem problem = testing::random_problem(random, shape, Placement::vee(p), random.coin());
    problem.activation_limit = random.real(1, 2 * p) * problem.device_activation();
    SCOPED_TRACE(fmt::format("round {}: p {} m {}", round, p, shape.microbatches));
    if (find_schedule("v-search")->refusal(problem)) continue;
    ++accepted;
    EXPECT_LE(search(problem).peak_activation(), *problem.activation_limit);
  }
  EXPECT_GT(accepted, testing::rounds(100));
}

TEST(BestVee, TakesMoreTimeTheLessMemoryItHas) {
  for (const testing::Times& times : {kUnit, testing::Times{10, 11, 7, 1}}) {
    double cost = std::numeric_limits<double>::infinity();
    for (int limit = 2; limit <= 16; limit += 2) {
      const double next = search(make(8, 24, times, limit), "best").cost.value();
      EXPECT_LE(next, cost) << "limit " << limit;
      cost = next;
    }
  }
}

}  // namespace
}  // namespace pipesim::v_search_test
