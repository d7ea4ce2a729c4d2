// Refinement, bounds and proofs where microbatches cost unequally: held against every order of tiny
// problems.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>
#include <vector>

#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"
#include "sim/read/scenario.h"
#include "sim/search/bound.h"
#include "sim/search/excluded.h"
#include "sim/search/refine.h"
#include "sim/search/search.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim {
namespace {

using testing::Random;

// Every order of F, B and W of one chunk and m microbatches that keeps microbatches in their order
// and F before B before W of each.
std::vector<std::vector<Pass>> every_word(int microbatches) {
  std::vector<std::vector<Pass>> words;
  std::vector<Pass> word;
  const auto extend = [&](const auto& self, int f, int b, int w) -> void {
    if (w == microbatches) words.push_back(word);
    const auto with = [&](PassKind kind, int next, bool may, int df, int db, int dw) {
      if (!may) return;
      word.push_back(make_pass(kind, next));
      self(self, f + df, b + db, w + dw);
      word.pop_back();
    };
    with(PassKind::kF, f, f < microbatches, 1, 0, 0);
    with(PassKind::kB, b, b < f, 0, 1, 0);
    with(PassKind::kW, w, w < b, 0, 0, 1);
  };
  extend(extend, 0, 0, 0);
  return words;
}

// Of all orders that keep the limit, by trying every one.
Seconds least_of_all(const Problem& problem, Bytes limit) {
  const auto words = every_word(problem.shape.microbatches);
  std::optional<Seconds> least;
  std::vector<size_t> chosen(static_cast<size_t>(problem.shape.devices), 0);
  while (true) {
    PassLists lists;
    for (const size_t word : chosen) lists.push_back(words[word]);
    try {
      const Evaluation result = evaluate({problem.shape, problem.placement, lists}, problem);
      const Seconds time = time_of(result, problem.objective);
      if (result.peak_activation() <= kRounding * limit && (!least || time < *least)) least = time;
    } catch (const InfeasibleError&) {
      // A deadlock: no program.
    }
    size_t device = 0;
    while (device < chosen.size() && ++chosen[device] == words.size()) chosen[device++] = 0;
    if (device == chosen.size()) return least.value();
  }
}

Problem random_unequal(Random& random, const Shape& shape, const Placement& place) {
  Problem problem = testing::random_problem(random, shape, place, true);
  testing::set_factors(problem, testing::random_factors(random, shape.units()));
  problem = for_planning(problem);
  problem.objective = random.coin() ? Objective::kMakespan : Objective::kCost;
  return problem;
}

TEST(UnequalSearch, BoundsAreBelowTheBestOfAllOrdersAndRefinementIsAbove) {
  Random random(5);
  int reached = 0;
  int bounded = 0;
  const int rounds = testing::rounds(60);
  for (int round = 0; round < rounds; ++round) {
    const Shape shape{2, 1, random.integer(1, 3), 1};
    const Problem problem = random_unequal(random, shape, Placement::looped(2, 1));
    const Bytes limit = random.real(1, 2.5) * problem.device_activation();
    SCOPED_TRACE(fmt::format("round {}: m {}", round, shape.microbatches));
    const Seconds best = least_of_all(problem, limit);
    const Seconds bound = lower_bound(problem, limit);
    EXPECT_LE(bound, kRounding * best);
    const Seconds closer = excluded_below(problem, limit, bound, best);
    EXPECT_LE(closer, kRounding * best);
    EXPECT_GE(closer, bound);
    PassLists one_at_a_time(2);
    for (auto& list : one_at_a_time) {
      for (int i = 0; i < shape.microbatches; ++i) {
        for (const PassKind kind : {PassKind::kF, PassKind::kB, PassKind::kW}) {
          list.push_back(make_pass(kind, i));
        }
      }
    }
    const Program start(shape, problem.placement, one_at_a_time);
    const Evaluation found = evaluate(refine(start, problem, limit, {1, 3e4}), problem);
    EXPECT_GE(kRounding * time_of(found, problem.objective), best);
    EXPECT_LE(found.peak_activation(), kRounding * limit);
    reached += time_of(found, problem.objective) <= kRounding * best ? 1 : 0;
    bounded += 1.05 * bound >= best ? 1 : 0;
  }
  EXPECT_GE(reached, 0.95 * rounds);
  EXPECT_GE(bounded, 0.75 * rounds);
}

TEST(UnequalSearch, RefinementIsNeverLongerAndKeepsTheLimit) {
  Random random(6);
  int shorter = 0;
  for (int round = 0; round < testing::rounds(60); ++round) {
    const int devices = random.integer(1, 5);
    const Placement place = random.coin() && devices > 1
                                ? Placement::vee(devices)
                                : Placement::looped(devices, random.integer(1, 2));
    const Shape shape{devices, place.chunks(), random.integer(1, 12), 1};
    const Problem problem = random_unequal(random, shape, place);
    const Bytes limit = random.real(1, 2.0 * devices) * problem.device_activation();
    Problem planning = problem;
    planning.kinds.clear();
    planning.activation_limit = limit;
    const bool vee = place == Placement::vee(devices) && devices > 1;
    const char* const name = vee ? "zb-v" : place.chunks() == 1 ? "zb" : nullptr;
    if (name == nullptr) continue;
    const Program start = find_schedule(name)->plan(planning);
    if (start.units_overtake()) continue;
    const Evaluation before = evaluate(start, problem);
    const Evaluation after = evaluate(refine(start, problem, limit, {1, 1e5}), problem);
    SCOPED_TRACE(fmt::format("round {}: p {} m {}", round, devices, shape.microbatches));
    EXPECT_LE(time_of(after, problem.objective), kRounding * time_of(before, problem.objective));
    EXPECT_LE(after.peak_activation(), kRounding * limit);
    EXPECT_GE(kRounding * time_of(after, problem.objective), lower_bound(problem, limit));
    shorter += after.cost < before.cost ? 1 : 0;
  }
  EXPECT_GT(shorter, testing::rounds(60) / 10);
}

// Whatever order microbatches are put in for each schedule, the search ends above its bound and
// never behind what it started from.
TEST(UnequalSearch, SearchesOrdersOfUnequalMicrobatches) {
  for (const char* const order : {"given", "longest_first", "dynapipe"}) {
    SearchOptions options;
    options.refinement.effort = 1e5;
    const Search search(read_scenario(YamlSource("test", fmt::format(R"(
schedule: 1f1b
parallel: {{pipeline_model_parallel_size: 3}}
batch: {{num_microbatches: 6, factors: [1, 2, 0.5, 3, 1, 1.5], order: {}}}
cost: {{kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, transfer: 1 ms}}
memory: {{kind: given, activation: 1 GiB, weight_stash: 0.5 GiB}}
)",
                                                                     order))),
                        options);
    for (const double part : {0.5, 1.0}) {
      const SearchResult result = search.at(part * search.unit());
      ASSERT_TRUE(result.best) << order;
      EXPECT_LE(result.bound, kRounding * result.best->time) << order;
      EXPECT_LE(result.best->time, result.registered->time) << order;
      EXPECT_LE(result.best->peak, kRounding * result.limit) << order;
    }
  }
}

// Slices of a sequence cost by their position, and their backwards run in another order.
TEST(UnequalSearch, TakesSlicesThatCostUnequally) {
  const Scenario scenario = read_scenario(YamlSource("test", R"(
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 3}
batch: {num_microbatches: 6}
cost: {kind: given, attention_share: 0.6, forward: 10 ms, backward_input: 12 ms,
       backward_weight: 8 ms, transfer: 1 ms}
memory: {kind: given, activation: 1 GiB, weight_stash: 0.5 GiB}
)"));
  for (const char* const name : {"seq-1f1b", "terapipe"}) {
    SearchOptions options;
    options.max_splits = 4;
    options.schedules = {name};
    options.refinement.effort = 1e5;
    const Search search(scenario, options);
    const SearchResult result = search.at(2 * search.unit());
    ASSERT_TRUE(result.best) << name;
    EXPECT_EQ(result.best->schedule, name);
    EXPECT_LE(result.bound, kRounding * result.best->time) << name;
    EXPECT_GE(1.5 * result.bound, result.best->time) << name;
  }
}

}  // namespace
}  // namespace pipesim
