#include "sim/graph/renumber.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>

#include "sim/core/error.h"
#include "sim/execution/with_offload.h"
#include "sim/graph/build.h"
#include "tests/pipeline/problems.h"

namespace pipesim::renumber_test {
namespace {

Problem recosted(testing::Random& random, const Problem& problem) {
  Problem other = testing::random_problem(random, problem.shape, problem.placement, false);
  for (StageCost& cost : other.stages) {
    cost.copy_out = random.real(0.1, 5) * cost.forward;
    cost.copy_in = random.real(0.1, 5) * cost.forward;
    cost.activation = cost.activation + cost.weight_stash;
  }
  return other;
}

BuildOptions drawn_options(testing::Random& random, int devices) {
  BuildOptions options;
  options.iterations = random.integer(1, 3);
  options.sync = random.coin() ? OptimizerSync::kAllReduce : OptimizerSync::kPostValidation;
  options.collective = Seconds(random.real(1, 2));
  options.optimizer = Seconds(random.real(1, 2));
  for (int d = 0; d < devices; ++d) options.gradients_of_device.emplace_back(random.real(1, 2));
  for (int d = 0; d < 2 * devices; ++d) options.slowdown_of_rank.push_back(random.real(1, 2));
  return options;
}

// Other numbers for the same structure.
BuildOptions other_numbers(testing::Random& random, const BuildOptions& options, int devices) {
  BuildOptions other = drawn_options(random, devices);
  other.iterations = options.iterations;
  other.sync = options.sync;
  return other;
}

bool equal(const TaskClass& a, const TaskClass& b) {
  return a.kind == b.kind && a.pass == b.pass && a.barrier == b.barrier &&
         a.pipeline == b.pipeline && a.device == b.device && a.receiver == b.receiver &&
         a.chunk == b.chunk && a.chunk_back == b.chunk_back && a.seconds == b.seconds &&
         a.latency == b.latency && a.acquired == b.acquired && a.released == b.released;
}

TEST(Renumber, GivesTheGraphThatIsBuiltAnew) {
  testing::Random random(51);
  for (int round = 0; round < 100; ++round) {
    const testing::RandomCase drawn = testing::random_case(random);
    const Problem first = recosted(random, drawn.problem);
    auto program = std::make_shared<const Program>(drawn.program);
    if (random.coin()) {
      program =
          std::make_shared<const Program>(with_offload(drawn.program, first, first.shape.chunks));
    }
    const int devices = first.shape.devices;
    std::vector<std::vector<int>> ranks(2);
    for (int d = 0; d < 2 * devices; ++d) ranks[d % 2].push_back(d);
    const BuildOptions options = drawn_options(random, devices);
    TaskGraph graph = build_task_graph(program, first, ranks, options);
    const Problem second = recosted(random, drawn.problem);
    const BuildOptions others = other_numbers(random, options, devices);
    ASSERT_EQ(structure_of(options), structure_of(others));
    renumber(graph, second, others);
    const TaskGraph anew = build_task_graph(program, second, ranks, others);
    EXPECT_TRUE(std::ranges::equal(graph.classes(), anew.classes(), equal)) << round;
    EXPECT_TRUE(std::ranges::equal(graph.class_of(), anew.class_of()));
    EXPECT_TRUE(std::ranges::equal(graph.edges(), anew.edges()));
    EXPECT_TRUE(std::ranges::equal(graph.row_starts(), anew.row_starts()));
  }
}

TEST(Renumber, KnowsWhatChangesTheTasks) {
  const BuildOptions plain;
  const auto differs = [&plain](const auto& change) {
    BuildOptions changed;
    change(changed);
    return !(structure_of(changed) == structure_of(plain));
  };
  EXPECT_TRUE(differs([](BuildOptions& o) { o.iterations = 2; }));
  EXPECT_TRUE(differs([](BuildOptions& o) { o.sync = OptimizerSync::kAllReduce; }));
  EXPECT_TRUE(differs([](BuildOptions& o) { o.collective = Seconds(1); }));
  EXPECT_TRUE(differs([](BuildOptions& o) { o.optimizer = Seconds(1); }));
  EXPECT_TRUE(differs([](BuildOptions& o) { o.optimizer_of_device = {Seconds(0)}; }));
  EXPECT_TRUE(differs([](BuildOptions& o) { o.gradients_of_device = {Seconds(0)}; }));
  EXPECT_TRUE(differs([](BuildOptions& o) { o.blocking = CallGroups::kMegatron; }));
  EXPECT_TRUE(differs([](BuildOptions& o) { o.contending_copies = 0.5; }));
  EXPECT_FALSE(differs([](BuildOptions& o) { o.slowdown_of_rank = {2.0}; }));
}

TEST(Renumber, RefusesAGraphThatWasNotBuilt) {
  TaskGraph::Parts parts;
  parts.classes.resize(1);
  parts.row = {0};
  TaskGraph graph(std::move(parts));
  EXPECT_THROW(renumber(graph, {}, {}), LogicError);
}

}  // namespace
}  // namespace pipesim::renumber_test
