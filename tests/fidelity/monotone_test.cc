// Automatic schedules on random pairs of problems, of which one has more memory or shorter passes
// or messages than the other: it should not take longer. With more memory none does, with shorter
// messages seldom and hardly; how often and by how much zb-v does with shorter passes is bounded.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>

#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim {
namespace {

constexpr int kPairs = 1000;
constexpr double kSame = 1 + 1e-12;

struct Counts {
  int worse = 0;
  int much_worse = 0;  // by more than half a percent
  double most = 0;     // by this share

  void add(Seconds better_off, Seconds other) {
    if (better_off <= kSame * other) return;
    ++worse;
    const double by = better_off / other - 1;
    if (by > 0.005) ++much_worse;
    most = std::max(most, by);
  }
};

struct Compared {
  Counts memory;
  Counts messages;
  Counts times;      // of any kind
  Counts published;  // zb-v against the rules of its paper
};

Problem random_problem(testing::Random& random, bool vee) {
  const int devices = random.integer(2, 10);
  const int microbatches = random.integer(devices, 3 * devices);
  const auto whole = [&](int least) { return 1e-3 * random.integer(least, 20); };
  const testing::Times times{whole(5), whole(5), whole(3), 5e-4 * random.integer(0, 4)};
  Problem problem =
      testing::make_problem({devices, vee ? 2 : 1, microbatches, 1},
                            vee ? Placement::vee(devices) : Placement::looped(devices, 1), times);
  const bool unequal = random.integer(0, 3) == 0;
  const double stash = 0.5 + 0.25 * random.integer(0, 2);
  for (StageCost& cost : problem.stages) {
    cost.weight_stash = stash * cost.activation;
    if (!unequal) continue;
    for (Seconds* each : {&cost.forward, &cost.backward_input, &cost.backward_weight}) {
      *each = random.real(0.7, 1.4) * *each;
    }
  }
  return problem;
}

void shorten(Problem& problem, testing::Random& random) {
  Seconds StageCost::*const kinds[] = {&StageCost::forward, &StageCost::backward_input,
                                       &StageCost::backward_weight, &StageCost::transfer};
  const auto kind = kinds[random.integer(0, 3)];
  const double factor = random.real(0.5, 0.98);
  for (StageCost& cost : problem.stages) cost.*kind = factor * (cost.*kind);
}

// More bandwidth, or less latency; every eighth time messages take no time at all.
Problem with_shorter_messages(Problem problem, testing::Random& random) {
  const double factor = std::max(0.0, random.real(-0.14, 0.98));
  for (StageCost& cost : problem.stages) cost.transfer = factor * cost.transfer;
  return problem;
}

Seconds cost_within(const Schedule& schedule, Problem problem, double of_1f1b) {
  problem.activation_limit =
      std::max(1.0, of_1f1b * problem.shape.devices) * problem.device_activation();
  return evaluate(schedule.plan(for_planning(problem)), problem).cost;
}

Compared compare(const char* name, int pairs) {
  const Schedule& schedule = *find_schedule(name);
  const bool vee = schedule.default_chunks == 2;
  testing::Random random(5);
  testing::Random of_messages(6);
  Compared counts;
  for (int pair = 0; pair < pairs; ++pair) {
    Problem problem = random_problem(random, vee);
    const double limit = random.real(0.3, 2.2);
    const Seconds cost = cost_within(schedule, problem, limit);
    counts.memory.add(cost_within(schedule, problem, limit + random.real(0.01, 0.6)), cost);
    if (vee) {
      Problem published = problem;
      published.options["published_rules"] = true;
      counts.published.add(cost, cost_within(*find_schedule("zb-v"), published, limit));
    }
    counts.messages.add(cost_within(schedule, with_shorter_messages(problem, of_messages), limit),
                        cost);
    shorten(problem, random);
    counts.times.add(cost_within(schedule, problem, limit), cost);
  }
  return counts;
}

void report(const char* name, const Compared& counts) {
  for (const auto& [what, each] :
       {std::pair("more memory", counts.memory), std::pair("shorter messages", counts.messages),
        std::pair("shorter passes or messages", counts.times),
        std::pair("published rules", counts.published)}) {
    fmt::print("{}: {}: {} slower, {} by over 0.5%, at most {:.3f}%\n", name, what, each.worse,
               each.much_worse, 100 * each.most);
  }
}

TEST(Monotone, ZeroBubbleWithinMemory) {
  const Compared counts = compare("zb", kPairs);
  report("zb", counts);
  EXPECT_EQ(counts.memory.worse, 0);
  for (const Counts& times : {counts.messages, counts.times}) {
    EXPECT_LT(times.worse, kPairs / 100);
    EXPECT_EQ(times.much_worse, 0);
  }
}

TEST(Monotone, ZeroBubbleVWithinMemory) {
  const Compared counts = compare("zb-v", kPairs);
  report("zb-v", counts);
  EXPECT_EQ(counts.published.worse, 0);
  EXPECT_EQ(counts.memory.worse, 0);
  EXPECT_LT(counts.messages.worse, kPairs / 100);
  EXPECT_EQ(counts.messages.much_worse, 0);
  EXPECT_LE(counts.times.worse, kPairs / 50);
  EXPECT_LE(counts.times.much_worse, kPairs / 100);
}

TEST(Monotone, BlocksWithinMemory) {
  constexpr int kFew = 100;
  const Compared counts = compare("v-search", kFew);
  report("v-search", counts);
  EXPECT_EQ(counts.memory.worse, 0);
  EXPECT_EQ(counts.published.worse, 0);
  for (const Counts& times : {counts.messages, counts.times}) {
    EXPECT_LE(times.worse, kFew / 50);
    EXPECT_EQ(times.much_worse, 0);
  }
}

}  // namespace
}  // namespace pipesim
