// The search for V-shaped building blocks against what the authors' public search finds (cost and
// peak of repository sail-sg/zero-bubble-pipeline-parallelism, v_auto_schedule.py), against every
// block built, and within any limit.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>

#include "sim/execution/evaluate.h"
#include "sim/planning/building_block.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim {
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

TEST(VeeSearch, CostsNoMoreThanThePublicSearch) {
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
    EXPECT_LE(ours.cost.value(), each.cost);
    EXPECT_LE(ours.peak_activation(), *problem.activation_limit);
  }
}

// Below the memory that a block needs at least (4 chunks up to p = 4, then 6), the public search
// returns nothing.
TEST(VeeSearch, StartsWhereThePublicSearchDoesAndGoesBelow) {
  for (const auto& [p, least] : {std::pair{2, 4}, {3, 4}, {4, 4}, {5, 6}, {6, 6}}) {
    double cost = std::numeric_limits<double>::infinity();
    for (int limit = 2; limit <= least; ++limit) {
      SCOPED_TRACE(fmt::format("p {} limit {}", p, limit));
      const Problem problem = make(p, 3 * p, kUnit, limit);
      const Evaluation ours = search(problem);
      EXPECT_LE(ours.peak_activation(), *problem.activation_limit);
      EXPECT_LE(ours.cost.value(), cost);
      cost = ours.cost.value();
    }
  }
}

// What the public search does: every block built, the cheapest kept.
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

TEST(VeeSearch, CostsNoMoreThanTheBestOfAllBlocks) {
  const testing::Times all[] = {kUnit, {10, 12, 8, 0}, {10, 11, 7, 1}, {4, 10, 8, 0}, {2, 3, 7, 0}};
  const auto step = [](int p) { return (p > 7 ? 2 : 1) * (testing::kSanitized ? 5 : 1); };
  int less = 0;
  int searched = 0;
  for (const testing::Times& times : all) {
    for (const auto& [p, m] :
         {std::pair{1, 3}, {3, 7}, {4, 3}, {5, 14}, {6, 24}, {7, 7}, {8, 32}, {9, 27}, {11, 44}}) {
      for (int limit = 3; limit <= 2 * p; limit += step(p)) {
        SCOPED_TRACE(fmt::format("p {} m {} limit {} F {}", p, m, limit, times.forward));
        const double best = cheapest_of_all_blocks(p, m, times, limit);
        const double ours = search(make(p, m, times, limit)).cost.value();
        EXPECT_LE(ours, best);
        ++searched;
        less += ours < best ? 1 : 0;
      }
    }
  }
  fmt::print("{} searches, {} found less\n", searched, less);
  EXPECT_GT(searched, testing::rounds(300));
  EXPECT_GT(less, searched / 2);
}

// Any stages, boundaries, bytes and limits: evaluate throws where a program deadlocks, Program
// where it is not complete.
TEST(VeeSearch, KeepsEveryLimitThatOneMicrobatchKeeps) {
  testing::Random random(8);
  for (int round = 0; round < testing::rounds(200); ++round) {
    const int p = random.integer(1, 10);
    const Shape shape{p, 2, random.integer(1, 30), 1};
    Problem problem = testing::random_problem(random, shape, Placement::vee(p), random.coin());
    const Bytes one = problem.device_activation();
    const double share = random.coin() ? random.real(1, 3) : random.real(1, 2 * p);
    problem.activation_limit = share * one;
    SCOPED_TRACE(fmt::format("round {}: p {} m {} limit {}", round, p, shape.microbatches, share));
    EXPECT_LE(search(problem).peak_activation(), *problem.activation_limit);
    EXPECT_LE(search(problem, "v-zb").peak_activation(), p * one);
  }
}

TEST(VeeSearch, TakesMoreTimeTheLessMemoryItHas) {
  for (const testing::Times& times : {kUnit, testing::Times{10, 11, 7, 1}}) {
    double cost = std::numeric_limits<double>::infinity();
    for (int limit = 2; limit <= 16; limit += 2) {
      const double next = search(make(8, 24, times, limit)).cost.value();
      EXPECT_LE(next, cost) << "limit " << limit;
      cost = next;
    }
  }
}

TEST(VeeSearch, RefusesALimitBelowOneMicrobatchAndSaysTheLeast) {
  Problem problem = make(4, 8, kUnit, 2);
  problem.stages[2].activation = problem.stages[2].weight_stash = 2 * kGiB;
  problem.stages[5].activation = problem.stages[5].weight_stash = kGiB;
  problem.activation_limit = 2.5 * kGiB;
  const auto refusal = find_schedule("v-search")->refusal(problem);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_NE(refusal->reason.find("at least 3.00 GiB"), std::string::npos) << refusal->reason;
  problem.activation_limit = 3 * kGiB;
  EXPECT_FALSE(find_schedule("v-search")->refusal(problem).has_value());
  EXPECT_LE(search(problem).peak_activation(), 3 * kGiB);
}

}  // namespace
}  // namespace pipesim
