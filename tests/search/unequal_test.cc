// Refinement, bounds and proofs where microbatches cost unequally: held against every order of tiny
// problems.
#include <algorithm>
#include <array>
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

namespace pipesim::unequal_test {
namespace {

using testing::Random;

// Every order of a device's passes that keeps microbatches in their order and F before B before W
// of each chunk and microbatch.
std::vector<std::vector<Pass>> every_word(int chunks, int microbatches) {
  constexpr std::array kinds{PassKind::kF, PassKind::kB, PassKind::kW};
  std::vector<std::vector<Pass>> words;
  std::vector<Pass> word;
  std::vector<int> done(static_cast<size_t>(chunks) * 3, 0);  // by chunk and kind
  const size_t length = done.size() * static_cast<size_t>(microbatches);
  const auto extend = [&](const auto& self) -> void {
    if (word.size() == length) words.push_back(word);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (size_t kind = 0; kind < kinds.size(); ++kind) {
        const size_t at = static_cast<size_t>(chunk) * 3 + kind;
        if (done[at] == (kind == 0 ? microbatches : done[at - 1])) continue;
        word.push_back(make_pass(kinds.at(kind), done[at]++, chunk));
        self(self);
        word.pop_back();
        --done[at];
      }
    }
  };
  extend(extend);
  return words;
}

// The least time of all orders that keep the limit, by trying every one.
Seconds least_of_all(const Problem& problem, Bytes limit) {
  const auto words = every_word(problem.shape.chunks, problem.shape.microbatches);
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

// F, B and W of all chunks of one microbatch after the other.
Program one_at_a_time(const Problem& problem) {
  PassLists lists(static_cast<size_t>(problem.shape.devices));
  for (auto& list : lists) {
    for (int i = 0; i < problem.shape.microbatches; ++i) {
      for (int c = 0; c < problem.shape.chunks; ++c) list.push_back(make_pass(PassKind::kF, i, c));
      for (const PassKind kind : {PassKind::kB, PassKind::kW}) {
        for (int c = problem.shape.chunks; c-- > 0;) list.push_back(make_pass(kind, i, c));
      }
    }
  }
  return {problem.shape, problem.placement, lists};
}

Problem random_unequal(Random& random, const Shape& shape, const Placement& place) {
  Problem problem = testing::random_problem(random, shape, place, true);
  testing::set_factors(problem, testing::random_factors(random, shape.units()));
  if (!problem.kinds.empty() &&
      random.coin()) {  // not in proportion, as images that cost one stage alone
    for (UnitKind& kind : problem.kinds) {
      for (StageCost& stage : kind.stages) {
        stage.forward = Seconds(random.integer(1, 20));
        stage.activation = Bytes(random.integer(10, 20));
      }
    }
    set_kinds(problem, problem.kinds, problem.kind_of_unit);
  }
  problem = for_planning(problem);
  problem.objective = random.coin() ? Objective::kMakespan : Objective::kCost;
  return problem;
}

// Two devices, or the two chunks of one.
TEST(UnequalSearch, BoundsAreBelowTheBestOfAllOrdersAndRefinementIsAbove) {
  Random random(5);
  int reached = 0;
  int bounded = 0;
  const int rounds = testing::rounds(60);
  for (int round = 0; round < rounds; ++round) {
    const bool chunks = round % 4 == 0;
    const Shape shape = chunks ? Shape{1, 2, 2, 1} : Shape{2, 1, random.integer(1, 3), 1};
    const Problem problem =
        random_unequal(random, shape, Placement::looped(shape.devices, shape.chunks));
    const Bytes limit = random.real(1, 2.5) * problem.device_activation();
    SCOPED_TRACE(fmt::format("round {}: v {} m {}", round, shape.chunks, shape.microbatches));
    const Seconds best = least_of_all(problem, limit);
    const Seconds bound = lower_bound(problem, limit);
    EXPECT_LE(bound, kRounding * best);
    const Seconds closer = excluded_below(problem, limit, bound, best);
    EXPECT_LE(closer, kRounding * best);
    EXPECT_GE(closer, bound);
    const Program start = one_at_a_time(problem);
    const Evaluation found = evaluate(refine(start, problem, limit, {1, 3e4}), problem);
    EXPECT_GE(kRounding * time_of(found, problem.objective), best);
    EXPECT_LE(found.peak_activation(), kRounding * limit);
    reached += time_of(found, problem.objective) <= kRounding * best ? 1 : 0;
    bounded += 1.05 * bound >= best ? 1 : 0;
  }
  if (testing::kSanitized) return;  // too few rounds for shares of them
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
    const char* const placement = vee ? "vee" : place.chunks() == 1 ? "linear" : "looped";
    const Program start = find_schedule("best", placement)->plan(planning);
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

// 1F1B on two devices holds two microbatches after each other: two large ones are too many.
TEST(UnequalSearch, SeeksOrdersOfMicrobatchesWithinTheLimit) {
  SearchOptions options;
  options.schedules = {"1f1b"};
  options.refine = false;
  const Scenario scenario = read_scenario(YamlSource("test", R"(
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 2}
batch: {num_microbatches: 6, factors: [3, 3, 1, 1, 1, 3], order: search}
cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, transfer: 1 ms}
memory: {kind: given, activation: 1 GiB, weight_stash: 0.5 GiB}
)"));
  const Bytes limit(4.0 * (1 << 30));
  EXPECT_FALSE(Search(scenario, options).at(limit).best);
  options.order_within = limit;
  EXPECT_TRUE(Search(scenario, options).at(limit).best);
  options.order_within = 4.0 / 6;
  EXPECT_TRUE(Search(scenario, options).at(limit).best);
}

// An order is sought without what leaves for the host: where that makes it worse, the given one
// counts.
TEST(UnequalSearch, IsNeverWorseForAnOrderThatIsSought) {
  const auto time = [](const char* order) {
    SearchOptions options;
    options.schedules = {"best"};
    options.refine = false;
    options.offload = true;
    const Search search(read_scenario(YamlSource("test", fmt::format(R"(
schedule: 1f1b
parallel: {{pipeline_model_parallel_size: 4}}
batch: {{num_microbatches: 8, factors: [1.949, 0.388, 0.987, 3.83, 4.27, 1.3, 1.262, 2.009],
        order: {}}}
cost: {{kind: given, forward: 10 ms, backward_input: 11 ms, backward_weight: 1 ms,
       transfer: 0.1 ms, copy_out: 6 ms, copy_in: 6 ms}}
memory: {{kind: given, activation: 4 GiB, weight_stash: 1 GiB}}
)",
                                                                     order))),
                        options);
    return search.at(search.unit()).best.value().time;
  };
  EXPECT_LE(time("search"), time("given"));
  EXPECT_LE(time("dynapipe"), time("given"));
}

// Megatron's interleaved 1F1B runs B and W as one pass, and others of its placement do not: one
// bound does not serve both.
TEST(UnequalSearch, BoundsSchedulesOfOnePlacementThatCostUnequally) {
  SearchOptions options;
  options.schedules = {"hanayo", "interleaved-1f1b"};
  options.refinement.effort = 1e5;
  const Search search(read_scenario(YamlSource("test", R"(
schedule: 1f1b
model: llama3-8b
cluster: dgx-h100
parallel: {pipeline_model_parallel_size: 1, tensor_model_parallel_size: 8}
batch: {num_microbatches: 4, micro_batch_size: 1, seq_length: 4096}
)")),
                      options);
  const SearchResult result = search.at(search.unit());
  ASSERT_TRUE(result.best);
  EXPECT_LE(result.bound, kRounding * result.best->time);
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
    EXPECT_EQ(result.best->choice.name, name);
    EXPECT_LE(result.bound, kRounding * result.best->time) << name;
    EXPECT_GE(1.5 * result.bound, result.best->time) << name;
  }
}

}  // namespace
}  // namespace pipesim::unequal_test
