// Searches of scenarios that fix recomputation, offload, blocking transfers or costs per stage.
// A search finds what runs as it says, and no schedule of the scenario is better.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/execution/with_backwards_apart.h"
#include "sim/interop/torch/csv_writer.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/search/bound_like.h"
#include "sim/search/refine_blocking.h"
#include "sim/search/search.h"
#include "tests/case/cases.h"
#include "tests/folder.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim::fixed_test {
namespace {

using testing::Random;

std::string seconds_of_stages(Random& random, int count, int least, int most) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += fmt::format("{}{} ms", i == 0 ? "" : ", ", random.integer(least, most));
  }
  return count == 1 ? text : '[' + text + ']';
}

struct Fixed {
  bool copies = false;
  bool blocking = false;
  std::string text;
};

// A random small scenario that fixes some of the four.
Fixed any_scenario(Random& random) {
  const int devices = random.integer(2, 4);
  const bool per_stage = random.coin();
  const int lists = random.coin() ? devices : 1;
  const auto seconds = [&](int least, int most) {
    return seconds_of_stages(random, lists, least, most);
  };
  Fixed fixed;
  fixed.text = fmt::format(
      "parallel: {{pipeline_model_parallel_size: {}}}\nbatch: {{num_microbatches: {}}}\n"
      "cost: {{kind: given, per: {}, forward: {}, backward_input: {}, backward_weight: {},\n"
      "       transfer: {} ms, copy_out: 3 ms, copy_in: 4 ms}}\n"
      "memory: {{kind: given, per: {}, activation: 2 GiB, weight_stash: 1 GiB, checkpoint: 0.2 "
      "GiB}}\n",
      devices, random.integer(2, 9), per_stage ? "stage" : "device", seconds(5, 20), seconds(5, 20),
      seconds(3, 12), random.integer(0, 3), per_stage ? "stage" : "device");
  switch (random.integer(0, 3)) {
    case 0:
      fixed.text += "recompute: full\n";
      break;
    case 1:
      fixed.text += "offload: {chunks: 1, prefetch: 1}\n";
      fixed.copies = true;
      break;
    case 2:
      fixed.text += "framework: {transfers: blocking}\n";
      fixed.blocking = true;
      break;
    default:
      fixed.text += "recompute: {granularity: full, chunks: 1}\n";
  }
  return fixed;
}

Scenario with_schedule(const Fixed& fixed, const std::string& schedule) {
  return read_scenario(YamlSource("test", "schedule: " + schedule + '\n' + fixed.text));
}

Result run_of(const Fixed& fixed, const std::string& schedule) {
  return simulate(prepare_first(with_schedule(fixed, schedule)));
}

// A run of what was found: by name where a schedule has calls of its own, else from a CSV.
Result run_of(const Fixed& fixed, const Found& found) {
  if (fixed.blocking && !found.refined) {
    const Scenario scenario = with_schedule(fixed, "1f1b");
    ScheduleChoice choice = found.choice;
    if (found.problem.activation_limit) choice.memory_limit = *found.problem.activation_limit;
    return simulate(case_of(scenario, choice));
  }
  const std::string csv = (testing::test_folder() / "found.csv").string();
  const Program& order = *found.program;
  std::ofstream file(csv);
  write_csv(file, Program(order.shape(), order.placement(), order.lists(),
                          {order.pairs().begin(), order.pairs().end()}));
  file.close();
  return run_of(fixed, fmt::format("{{csv: '{}'}}", csv));
}

Search search_of(const Fixed& fixed, double effort) {
  SearchOptions options;
  options.refinement.effort = effort;
  return {with_schedule(fixed, "1f1b"), options};
}

constexpr int kRounds = testing::rounds(60);

TEST(FixedSearch, FindsOrdersThatRunAsItSays) {
  Random random(1);
  int refined = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Fixed fixed = any_scenario(random);
    SCOPED_TRACE(fmt::format("round {}:\n{}", round, fixed.text));
    const Search search = search_of(fixed, 3e4);
    const SearchResult result = search.at(random.real(0.4, 1.5) * search.unit());
    if (!result.best) continue;
    refined += result.best->refined ? 1 : 0;
    EXPECT_LE(result.bound, kRounding * result.best->time);
    for (const Found* found : {&*result.best, &*result.registered}) {
      SCOPED_TRACE(found->choice.name);
      EXPECT_LE(found->peak, kRounding * result.limit);
      const Report report = run_of(fixed, *found).report;
      EXPECT_EQ(report.makespan_from_rest, found->makespan);
      EXPECT_EQ(report.cost, found->cost);
      EXPECT_EQ(report.peak_activation, found->peak);
    }
  }
  EXPECT_GT(refined, kRounds / 10);
}

TEST(FixedSearch, IsNotSlowerThanASchedule) {
  Random random(2);
  int compared = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Fixed fixed = any_scenario(random);
    SCOPED_TRACE(fmt::format("round {}:\n{}", round, fixed.text));
    const Search search = search_of(fixed, 1e3);
    const Bytes limit = random.real(0.4, 1.5) * search.unit();
    const SearchResult result = search.at(limit);
    for (const std::string name : {"1f1b", "gpipe", "zb-h1", "zb-h2", "1f1b-v", "zb-v", "v-half",
                                   "{name: best, memory_limit: 0.75}", "interleaved-1f1b"}) {
      SCOPED_TRACE(name);
      try {
        const Report report = run_of(fixed, name).report;
        if (report.peak_activation > limit) continue;
        const int stages = prepare_first(with_schedule(fixed, name)).placement.model_stages();
        const auto of_costs = prepare_first(with_schedule(fixed, "1f1b")).placement;
        if (fixed.text.find("per: stage") != std::string::npos &&
            stages != of_costs.model_stages()) {
          continue;
        }
        ASSERT_TRUE(result.best);
        EXPECT_LE(result.best->time, kRounding * report.makespan_from_rest);
        ++compared;
      } catch (const InputError&) {
        continue;  // of the shape
      } catch (const InfeasibleError&) {
        continue;
      }
    }
  }
  EXPECT_GT(compared, 2 * kRounds);
}

constexpr const char* kPlain = R"(
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 8}
cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, transfer: 1 ms}
memory: {kind: given, activation: 2 GiB, weight_stash: 1 GiB, checkpoint: 0.2 GiB}
)";

SearchResult found_with(const Changes& changes, SearchOptions options = {}, double limit = 1) {
  options.refinement.effort = 1e5;
  const Search search(read_changed(std::string("schedule: 1f1b") + kPlain, changes),
                      std::move(options));
  return search.at(limit * search.unit());
}

// True if at some limit the best is a refined order with R, shorter than every family.
bool refines_recomputation(const Changes& changes, const SearchOptions& options) {
  return std::ranges::any_of(std::vector{0.2, 0.3, 0.4, 0.5}, [&](double limit) {
    const SearchResult result = found_with(changes, options, limit);
    return result.best && result.best->refined && result.best->program->recomputes() &&
           result.best->time < result.registered->time;
  });
}

TEST(FixedSearch, RefinesOrdersThatRecompute) {
  EXPECT_TRUE(refines_recomputation({{"recompute", "full"}}, {}));
  SearchOptions chosen;
  chosen.recompute = true;
  EXPECT_TRUE(refines_recomputation({}, chosen));
}

// Without its calls an order with blocks may hold its devices for good: microbatches then start one
// at a time.
TEST(FixedSearch, TakesBlocksWhoseTransfersHoldDevices) {
  SearchOptions options;
  options.schedules = {"stp"};
  const SearchResult result = found_with({{"batch.num_microbatches", "11"},
                                          {"cost.forward", "[11 ms, 8 ms, 13 ms, 11 ms]"},
                                          {"cost.backward_input", "[14 ms, 16 ms, 20 ms, 17 ms]"},
                                          {"cost.backward_weight", "[5 ms, 10 ms, 2 ms, 6 ms]"},
                                          {"cost.overlapped", "30 ms"},
                                          {"framework", "{transfers: blocking}"},
                                          {"optimizer", "{sync: post_validation}"},
                                          {"recompute", "full"}},
                                         options);
  ASSERT_TRUE(result.best);
  EXPECT_LE(result.best->time, result.registered->time);
}

TEST(FixedSearch, TriesTheRecomputationOfEverySchedule) {
  const Changes two{{"schedule", "[1f1b, {name: zb-h1, recompute: full}]"}};
  SearchOptions options;
  options.schedules = {"1f1b", "zb-h1"};
  EXPECT_TRUE(keeps_all(*found_with(two, options).best));
  EXPECT_EQ(recompute_chunks_of(found_with(two, options, 0.6).best->choice), 1);
}

TEST(FixedSearch, SaysWhichFamiliesItsCostsAndChunksDoNotFit) {
  const auto left_out = [](const Changes& changes) {
    const Search search(read_changed(std::string("schedule: 1f1b") + kPlain, changes), {});
    return fmt::format("{}", fmt::join(search.left_out(), "\n"));
  };
  const std::string per_stage = left_out({{"cost.per", "stage"}, {"memory.per", "stage"}});
  EXPECT_NE(per_stage.find("v-half with 2 chunks: has 8 stages, and costs or memory are given per "
                           "stage, of 4"),
            std::string::npos)
      << per_stage;
  EXPECT_EQ(per_stage.find("zb-h1"), std::string::npos);
  const std::string chunks = left_out({{"schedule",
                                        "{name: 1f1b-v, recompute: {granularity: full, "
                                        "chunks: 2}}"}});
  EXPECT_NE(chunks.find("zb-h1: 2 chunks are to recompute, and it has 1 per device"),
            std::string::npos)
      << chunks;
}

// Selective recomputation changes what a model's passes cost and hold in every family.
TEST(FixedSearch, TakesModulesThatAreMadeAgain) {
  const auto scenario = [](const std::string& recompute) {
    return read_changed(R"(
schedule: 1f1b
model: llama3-8b
cluster: dgx-h100
parallel: {tensor_model_parallel_size: 4, pipeline_model_parallel_size: 4}
batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}
)",
                        {{"recompute", recompute}});
  };
  SearchOptions options;
  options.schedules = {"1f1b"};
  options.refine = false;
  const Search all(scenario("none"), options);
  const Search part(scenario("mlp"), options);
  EXPECT_LT(part.unit(), all.unit());
  const Found found = *part.at(2 * part.unit()).best;
  EXPECT_EQ(found.makespan, simulate(prepare_first(scenario("mlp"))).report.makespan_from_rest);
}

struct BlockingStart {
  Case made;
  Problem problem;
  Bytes limit;
  std::vector<Program> orders;
};

BlockingStart blocking_start(const std::string& schedule) {
  Case named = prepare_first(read_changed(std::string("schedule: ") + schedule + kPlain,
                                          {{"framework", "{transfers: blocking}"}}));
  const Result run = simulate(named);
  ScheduleChoice choice = named.choice;
  choice.program = std::make_shared<const Program>(with_backwards_apart(*run.program));
  Case made = prepare(named.scenario, choice);
  Problem problem = with_bytes(made.problem);
  return {std::move(made), std::move(problem), run.report.peak_activation, {*choice.program}};
}

TEST(RefineBlocking, FindsShorterOrdersWithinTheLimit) {
  for (const std::string schedule : {"1f1b", "gpipe", "zb-h1"}) {
    SCOPED_TRACE(schedule);
    const BlockingStart start = blocking_start(schedule);
    RefineOptions options{.effort = 0};
    const auto refine = [&] {
      return refine_blocking(start.made, start.orders, start.problem, start.limit, options);
    };
    const SimulatedOrder before = refine();
    options.effort = 1e6;
    const SimulatedOrder after = refine();
    EXPECT_LT(after.iteration, before.iteration);
    EXPECT_TRUE(refine().program->same_order(*after.program));
    Case made = start.made;
    made.choice.program = after.program;
    const Report report = simulate(made).report;
    EXPECT_EQ(report.iteration, after.iteration);
    EXPECT_EQ(report.makespan_from_rest, after.time);
    EXPECT_LE(report.peak_activation, kRounding * start.limit);
    EXPECT_GE(kRounding * after.time,
              bound_like(*after.program, start.problem, start.limit, false));
  }
}

TEST(RefineBlocking, EndsAtItsBoundAndWhenItIsStopped) {
  const BlockingStart start = blocking_start("1f1b");
  RefineOptions options{.effort = 0};
  const SimulatedOrder before =
      refine_blocking(start.made, start.orders, start.problem, start.limit, options);
  options.effort = 1e15;  // days
  options.bound = before.time;
  const SimulatedOrder same =
      refine_blocking(start.made, start.orders, start.problem, start.limit, options);
  EXPECT_TRUE(same.program->same_order(*before.program));
  options.bound.reset();
  int asked = 0;
  options.stop = [&asked] { return ++asked > 100; };
  EXPECT_LE(
      refine_blocking(start.made, start.orders, start.problem, start.limit, options).iteration,
      before.iteration);
}

}  // namespace
}  // namespace pipesim::fixed_test
