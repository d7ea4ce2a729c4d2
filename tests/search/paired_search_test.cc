// Search against a plain pairing of neighbours, on random problems whose blocks save time.
// PIPESIM_PAIRED_CASES=200 search_test --gtest_filter='PairedSearch*' runs 200 instead of a few.
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>

#include "sim/execution/evaluate.h"
#include "sim/planning/pairs.h"
#include "sim/read/scenario.h"
#include "sim/search/planned_within.h"
#include "sim/search/search.h"
#include "tests/pipeline/problems.h"

namespace pipesim::paired_search_test {
namespace {

struct Question {
  int devices, microbatches;
  double forward, input_gradient, weight_gradient, transfer;  // seconds of a device
  double block;                                               // of their sum
  double limit;                                               // in devices x activation
};

Question random_question(testing::Random& random) {
  const int p = random.integer(2, 8);
  return {p,
          random.integer(p, 4 * p),
          random.real(15, 25),
          random.real(15, 25),
          random.real(10, 20),
          random.coin() ? 0.0 : random.real(0, 2),
          random.real(0.6, 0.95),
          std::max(1.0 / p, random.real(0.5, 1.5))};
}

double block_of(const Question& asked) {
  const double backward = asked.input_gradient + asked.weight_gradient;
  return std::max({asked.block * (asked.forward + backward), asked.forward, backward});
}

Scenario scenario_of(const Question& asked) {
  return read_scenario(YamlSource(
      "test", fmt::format(R"(
schedule: 1f1b
parallel: {{pipeline_model_parallel_size: {}}}
batch: {{num_microbatches: {}}}
cost: {{kind: given, forward: {} s, backward_input: {} s, backward_weight: {} s, overlapped: {} s,
        transfer: {} s}}
memory: {{kind: given, activation: 2 GiB, weight_stash: 1 GiB}}
)",
                          asked.devices, asked.microbatches, asked.forward, asked.input_gradient,
                          asked.weight_gradient, block_of(asked), asked.transfer)));
}

Problem problem_of(const Question& asked, int chunks) {
  const int p = asked.devices;
  const double share = 1.0 / chunks;
  Problem problem = testing::make_problem({p, chunks, asked.microbatches, 1},
                                          chunks == 2 ? Placement::vee(p) : Placement::looped(p, 1),
                                          {share * asked.forward, share * asked.input_gradient,
                                           share * asked.weight_gradient, asked.transfer});
  for (StageCost& stage : problem.stages) {
    stage.overlapped = Seconds(share * block_of(asked));
    stage.activation = Bytes(share * 2);
    stage.weight_stash = Bytes(share);
  }
  problem.objective = Objective::kMakespan;
  return problem;
}

// The shortest of the orders planned within the limit, on one chunk and on the V, neighbours joined
// as long as one joins.
std::optional<Seconds> plain_pairing(const Question& asked) {
  constexpr double kAnyEffort = 1e12;
  std::optional<Seconds> least;
  for (const int chunks : {1, 2}) {
    const Problem problem = problem_of(asked, chunks);
    const Bytes limit(2 * asked.limit * asked.devices);
    for (const Program& order : planned_within(problem, limit, Included::kAll)) {
      const Seconds time =
          evaluate(with_pairs(order, problem, limit, kAnyEffort), problem).makespan;
      least = std::min(time, least.value_or(time));
    }
  }
  return least;
}

int cases() {
  const char* asked = std::getenv("PIPESIM_PAIRED_CASES");
  return asked == nullptr ? 2 : std::stoi(asked);
}

TEST(PairedSearch, IsNeverLongerThanAPlainPairing) {
  testing::Random random(49);
  SearchOptions options;
  options.refinement.effort = kFrontierEffort;
  double ratios = 0;
  int compared = 0;
  for (int i = 0; i < cases(); ++i) {
    const Question asked = random_question(random);
    SCOPED_TRACE(fmt::format("case {}: p {} m {} block {} limit {}", i, asked.devices,
                             asked.microbatches, asked.block, asked.limit));
    const Search search(scenario_of(asked), options);
    const SearchResult result = search.at(asked.limit * search.unit());
    const auto plain = plain_pairing(asked);
    if (!plain) continue;
    ASSERT_TRUE(result.best.has_value());
    EXPECT_LE(result.best->makespan.value(), plain->value() * (1 + 1e-9));
    EXPECT_LE(result.best->peak.value(), result.limit.value() * (1 + 1e-9));
    ratios += result.best->makespan / *plain;
    ++compared;
  }
  ASSERT_GT(compared, 0);
  RecordProperty("mean_ratio", fmt::format("{:.4f}", ratios / compared));
  EXPECT_LT(ratios / compared, 0.995);
}

}  // namespace
}  // namespace pipesim::paired_search_test
