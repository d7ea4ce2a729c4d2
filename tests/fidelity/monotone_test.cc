// `best` on random pairs of problems, of which one has more memory or shorter passes or messages
// than the other: it should not take longer. With more memory it does not, with shorter messages
// seldom and hardly; how often and by how much with shorter passes is bounded.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>

#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::monotone_test {
namespace {

constexpr int kPairs = 1000;
// A plan in V-shape takes 20 to 150 ms, one hundred times as long as a linear one.
constexpr int kVeePairs = 300;
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
  Counts published;  // against the published schedules of the placement that accept the limit
  Counts others;     // against the fixed orders that keep the limit
};

// Equal stages, unequal ones, a slow first or last one, W that take no time, or unequal bytes.
void make_unequal(Problem& problem, testing::Random& random) {
  const auto stretch = [](StageCost& cost, const auto& factor) {
    for (Seconds* each : {&cost.forward, &cost.backward_input, &cost.backward_weight}) {
      *each = factor() * *each;
    }
  };
  const double slow = random.real(1, 2.5);
  switch (random.integer(0, 7)) {
    case 0:
    case 1:
      for (StageCost& cost : problem.stages) stretch(cost, [&] { return random.real(0.7, 1.4); });
      break;
    case 2:
      stretch(problem.stages.front(), [slow] { return slow; });
      break;
    case 3:
      stretch(problem.stages.back(), [slow] { return slow; });
      break;
    case 4:
      for (StageCost& cost : problem.stages) cost.backward_weight = Seconds(0);
      break;
    case 5:
      for (StageCost& cost : problem.stages) {
        const double factor = random.real(0.8, 1.2);
        cost.activation = factor * cost.activation;
        cost.weight_stash = factor * cost.weight_stash;
      }
      break;
    default:
      break;
  }
}

struct Sizes {
  int least_devices, most_devices;
  int least_passes, most_passes;  // of a kind
};
// The sizes of ProblemSize, schedules/order_within.h.
constexpr Sizes kSmall{2, 10, 4, 300};
constexpr Sizes kMiddling{9, 16, 301, 600};
constexpr Sizes kLarge{13, 16, 601, 1024};

Problem random_problem(testing::Random& random, bool vee, const Sizes& sizes) {
  const int devices = random.integer(sizes.least_devices, sizes.most_devices);
  const int least = std::max(2, (sizes.least_passes + devices - 1) / devices);
  const int microbatches =
      random.integer(least, std::min(4 * devices, sizes.most_passes / devices));
  const auto whole = [&](int least) { return 1e-3 * random.integer(least, 20); };
  const testing::Times times{whole(5), whole(5), whole(3), 5e-4 * random.integer(0, 4)};
  Problem problem =
      testing::make_problem({devices, vee ? 2 : 1, microbatches, 1},
                            vee ? Placement::vee(devices) : Placement::looped(devices, 1), times);
  const double stash = 0.5 + 0.25 * random.integer(0, 2);
  for (StageCost& cost : problem.stages) {
    cost.weight_stash = stash * cost.activation;
  }
  make_unequal(problem, random);
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

Seconds time_within(const Schedule& schedule, Problem problem, double of_1f1b) {
  problem.activation_limit =
      std::max(1.0, of_1f1b * problem.shape.devices) * problem.device_activation();
  return time_of(evaluate(schedule.plan(for_planning(problem)), problem), problem.objective);
}

// The least time of orders without a limit that keep this one; nothing where none does.
std::optional<Seconds> least_of_others(const Problem& problem, bool vee, double of_1f1b) {
  const Bytes limit = std::max(1.0, of_1f1b * problem.shape.devices) * problem.device_activation();
  std::optional<Seconds> least;
  for (const char* name : vee ? std::array{"zb-v-handmade", "v-half", "v-min", "1f1b-v"}
                              : std::array{"1f1b", "zb-h1", "zb-h2", "gpipe"}) {
    const Evaluation result = evaluate(find_schedule(name)->plan(for_planning(problem)), problem);
    if (result.peak_activation() > limit) continue;
    const Seconds time = time_of(result, problem.objective);
    if (!least || time < *least) least = time;
  }
  return least;
}

// The time of `zb` or `zb-v`, where it accepts the limit.
std::optional<Seconds> published_within(Problem problem, bool vee, double of_1f1b) {
  const Schedule& schedule = *find_schedule(vee ? "zb-v" : "zb");
  problem.activation_limit =
      std::max(1.0, of_1f1b * problem.shape.devices) * problem.device_activation();
  if (schedule.refusal(for_planning(problem))) return std::nullopt;
  return time_within(schedule, problem, of_1f1b);
}

Compared compare(const char* placement, int pairs, Objective objective,
                 const Sizes& sizes = kSmall) {
  const Schedule& schedule = *find_schedule("best", placement);
  const bool vee = schedule.default_chunks == 2;
  testing::Random random(5);
  testing::Random of_messages(6);
  Compared counts;
  for (int pair = 0; pair < pairs; ++pair) {
    Problem problem = random_problem(random, vee, sizes);
    problem.objective = objective;
    const double limit = random.real(0.3, 2.2);
    const Seconds time = time_within(schedule, problem, limit);
    counts.memory.add(time_within(schedule, problem, limit + random.real(0.01, 0.6)), time);
    if (const auto least = least_of_others(problem, vee, limit)) counts.others.add(time, *least);
    if (const auto published = published_within(problem, vee, limit)) {
      counts.published.add(time, *published);
    }
    counts.messages.add(time_within(schedule, with_shorter_messages(problem, of_messages), limit),
                        time);
    shorten(problem, random);
    counts.times.add(time_within(schedule, problem, limit), time);
  }
  return counts;
}

void report(const char* name, const Compared& counts) {
  for (const auto& [what, each] :
       {std::pair("more memory", counts.memory), std::pair("shorter messages", counts.messages),
        std::pair("shorter passes or messages", counts.times),
        std::pair("published schedules", counts.published), std::pair("others", counts.others)}) {
    fmt::print("{}: {}: {} slower, {} by over 0.5%, at most {:.3f}%\n", name, what, each.worse,
               each.much_worse, 100 * each.most);
  }
}

void expect_never_slower(const Compared& counts) {
  EXPECT_EQ(counts.memory.worse, 0);
  EXPECT_EQ(counts.others.worse, 0);
  EXPECT_EQ(counts.published.worse, 0);
}

// No more than `most`, and none by over half a percent.
void expect_seldom_slower(const Counts& counts, int most) {
  EXPECT_LE(counts.worse, most);
  EXPECT_EQ(counts.much_worse, 0);
}

class Monotone : public ::testing::TestWithParam<Objective> {};

TEST_P(Monotone, LinearWithinMemory) {
  const Compared counts = compare("linear", kPairs, GetParam());
  report("linear", counts);
  expect_never_slower(counts);
  expect_seldom_slower(counts.messages, kPairs / 100 - 1);
  EXPECT_LT(counts.times.worse, kPairs / 100);
  EXPECT_LE(counts.times.much_worse, kPairs / 500);
}

TEST_P(Monotone, VeeWithinMemory) {
  const Compared counts = compare("vee", kVeePairs, GetParam());
  report("vee", counts);
  expect_never_slower(counts);
  expect_seldom_slower(counts.messages, kVeePairs / 100 - 1);
  EXPECT_LE(counts.times.worse, kVeePairs / 50);
  EXPECT_LE(counts.times.much_worse, kVeePairs / 100);
}

TEST_P(Monotone, MiddlingProblems) {
  constexpr int kSome = 60;
  for (const char* name : {"linear", "vee"}) {
    const Compared counts = compare(name, kSome, GetParam(), kMiddling);
    report(name, counts);
    expect_never_slower(counts);
    EXPECT_LE(counts.messages.worse, kSome / 30);
    EXPECT_LE(counts.messages.most, 0.01);
    EXPECT_LE(counts.times.worse, kSome / 30);
  }
}

// Not every lower limit is planned for.
TEST_P(Monotone, LargeProblemsLoseToNoOtherOrder) {
  constexpr int kSome = 60;
  for (const char* name : {"linear", "vee"}) {
    const Compared counts = compare(name, kSome, GetParam(), kLarge);
    report(name, counts);
    EXPECT_EQ(counts.others.worse, 0);
    EXPECT_EQ(counts.published.worse, 0);
    EXPECT_LE(counts.memory.worse, kSome / 20);
    EXPECT_LE(counts.memory.most, 0.02);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Monotone, ::testing::Values(Objective::kCost, Objective::kMakespan),
                         [](const auto& objective) {
                           return objective.param == Objective::kCost ? "Span" : "Makespan";
                         });

}  // namespace
}  // namespace pipesim::monotone_test
