// `search` against the pairing of single orders: `best` and the published V-shapes within a limit,
// their neighbours joined into blocks.
#include "sim/planning/pairs.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <string>

#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"
#include "sim/read/scenario.h"
#include "sim/search/search.h"
#include "tests/pipeline/problems.h"

namespace pipesim::pairs_test {
namespace {

constexpr int kDraws = 30;  // each takes a second or two of CPU

struct Draw {
  int devices, microbatches;
  double forward, input, weight, block, limit;  // milliseconds; limit as a share of 1F1B's memory
};

Draw draw(testing::Random& random) {
  const int devices = random.integer(2, 8);
  const double forward = random.integer(10, 30), input = random.integer(10, 30);
  const double weight = random.integer(5, 25);
  return {devices,
          random.integer(devices, 4 * devices),
          forward,
          input,
          weight,
          std::max(random.real(0.6, 0.95) * (forward + input + weight),
                   std::max(forward, input + weight)),
          random.real(0.5, 1.5)};
}

Problem problem_of(const Schedule& schedule, const Draw& of) {
  const int chunks = schedule.default_chunks;
  Problem problem = testing::make_problem({of.devices, chunks, of.microbatches, 1},
                                          schedule.place(of.devices, chunks));
  for (StageCost& cost : problem.stages) {
    cost.forward = Seconds(0.001 * of.forward / chunks);
    cost.backward_input = Seconds(0.001 * of.input / chunks);
    cost.backward_weight = Seconds(0.001 * of.weight / chunks);
    cost.overlapped = Seconds(0.001 * of.block / chunks);
    cost.activation = cost.weight_stash = Bytes(1.0 / chunks);
  }
  problem.options = options_of(schedule);
  problem.objective = Objective::kMakespan;
  return problem;
}

// The order of a schedule within the limit, with its neighbours joined.
std::optional<Seconds> paired_time(const Schedule& schedule, const Draw& of) {
  Problem problem = problem_of(schedule, of);
  const Bytes limit(of.limit * of.devices);
  if (schedule.memory_limit) problem.activation_limit = limit;
  if (schedule.refusal(problem)) return std::nullopt;
  try {
    const Program order = schedule.plan(problem);
    if (evaluate(order, problem).peak_activation() > limit) return std::nullopt;
    return evaluate(with_pairs(order, problem, limit, 1e9), problem).makespan;
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

Seconds least_paired(const Draw& of) {
  Seconds least(std::numeric_limits<double>::infinity());
  for (const Schedule* schedule : schedules()) {
    const bool ours = schedule->name == "best" && schedule->max_chunks <= 2;
    const bool vee = schedule->name.starts_with("v-") || schedule->name == "zb-v";
    if (!ours && !vee) continue;
    least = std::min(least, paired_time(*schedule, of).value_or(least));
  }
  return least;
}

std::optional<Seconds> found(const Draw& of) {
  const std::string text = fmt::format(
      "schedule: 1f1b\n"
      "parallel: {{pipeline_model_parallel_size: {}}}\n"
      "batch: {{num_microbatches: {}}}\n"
      "cost: {{kind: given, forward: {} ms, backward_input: {} ms, backward_weight: {} ms, "
      "overlapped: {} ms}}\n",
      of.devices, of.microbatches, of.forward, of.input, of.weight, of.block);
  const Search search(read_scenario(YamlSource("drawn", text)), {});
  const auto best = search.at(of.limit * search.unit()).best;
  return best ? std::optional(best->time) : std::nullopt;
}

TEST(SearchOfPairs, IsNoSlowerThanSingleOrdersWithTheirNeighboursJoined) {
  testing::Random random(1);
  int compared = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Draw of = draw(random);
    const Seconds least = least_paired(of);
    const auto best = found(of);
    if (!best) continue;
    ++compared;
    EXPECT_LE(best->value(), least.value() * (1 + 1e-9))
        << fmt::format("p {} m {} F {} B {} W {} block {} limit {}", of.devices, of.microbatches,
                       of.forward, of.input, of.weight, of.block, of.limit);
  }
  EXPECT_GE(compared, kDraws * 3 / 4);
}

}  // namespace
}  // namespace pipesim::pairs_test
