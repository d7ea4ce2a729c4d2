#include "sim/graph/build.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "sim/core/error.h"
#include "sim/engine/engine.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::build_test {
namespace {

constexpr auto kF = PassKind::kF, kB = PassKind::kB, kW = PassKind::kW, kBW = PassKind::kBW;

struct Planned {
  Problem problem;
  std::shared_ptr<const Program> program;
};

Planned planned(const char* name, const Shape& shape, const testing::Times& times) {
  const Schedule* schedule = find_schedule(name);
  Problem problem =
      testing::make_problem(shape, schedule->place(shape.devices, shape.chunks), times);
  return {problem, std::make_shared<Program>(schedule->plan(problem))};
}

std::vector<TaskId> waits_for(const TaskGraph& graph, TaskId task) {
  const auto edges = graph.waits_for(task);
  return {edges.begin(), edges.end()};
}

std::vector<double> ends_of_iterations(const TaskGraph& graph) {
  const Timeline timeline = make_replay_engine()->run(graph, {}, {});
  std::vector<double> ends(graph.iterations(), 0);
  for (TaskId task = 0; task < graph.size(); ++task) {
    double& end = ends[graph.iteration(task)];
    end = std::max(end, timeline.end[task]);
  }
  return ends;
}

size_t count(const TaskGraph& graph, TaskKind kind) {
  size_t found = 0;
  for (TaskId task = 0; task < graph.size(); ++task) {
    found += graph.task_class(task).kind == kind ? 1 : 0;
  }
  return found;
}

TEST(BuildTaskGraph, MakesTheGraphThatAHandMakes) {
  const auto [problem, program] = planned("1f1b", {2, 1, 1, 1}, {10, 12, 8, 1});
  const TaskGraph graph = build_task_graph(program, problem);
  const std::vector<std::pair<std::string, std::vector<TaskId>>> wanted{
      {"0F0", {}},
      {"0F0 -> device 1", {0}},
      {"1F0", {1}},
      {"1BW0", {2}},
      {"1B0 -> device 0", {3}},
      {"0BW0", {0, 4}},
      {"all-reduce", {3, 5}},
  };
  ASSERT_EQ(graph.size(), wanted.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    EXPECT_EQ(graph.name(task), wanted[task].first);
    EXPECT_EQ(waits_for(graph, task), wanted[task].second) << wanted[task].first;
  }
  EXPECT_EQ(graph.task_class(1).seconds, Seconds(1));
  EXPECT_EQ(graph.task_class(4).device, 1U);
  EXPECT_EQ(graph.task_class(4).receiver, 0U);
  EXPECT_EQ(graph.task_class(5).seconds, Seconds(20));
  EXPECT_EQ(graph.task_class(0).acquired, Bytes(1));
  EXPECT_EQ(graph.task_class(5).released, Bytes(1));
}

TEST(BuildTaskGraph, NamesTheCycleItRefuses) {
  const Shape shape{2, 1, 1, 1};
  const auto program = std::make_shared<Program>(
      shape, Placement::looped(2, 1),
      PassLists{{make_pass(kBW, 0), make_pass(kF, 0)}, {make_pass(kF, 0), make_pass(kBW, 0)}});
  try {
    (void)build_task_graph(program, testing::make_problem(shape));
    FAIL() << "a graph was made of a deadlock";
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("cycle: 0BW0 needs 1BW0"), std::string::npos)
        << error.what();
  }
}

TEST(BuildTaskGraph, SendsNothingWithinADevice) {
  const auto [problem, program] = planned("interleaved-1f1b", {1, 3, 4, 1}, {1, 1, 1, 5});
  EXPECT_EQ(count(build_task_graph(program, problem), TaskKind::kTransfer), 0U);
  const auto vee = std::make_shared<Program>(
      Shape{2, 2, 1, 1}, Placement::vee(2),
      PassLists{{make_pass(kF, 0), make_pass(kF, 0, 1), make_pass(kBW, 0, 1), make_pass(kBW, 0)},
                {make_pass(kF, 0), make_pass(kF, 0, 1), make_pass(kBW, 0, 1), make_pass(kBW, 0)}});
  const TaskGraph graph =
      build_task_graph(vee, testing::make_problem({2, 2, 1, 1}, Placement::vee(2), {1, 1, 1, 5}));
  EXPECT_EQ(count(graph, TaskKind::kTransfer), 4U) << "two boundaries, both ways";
}

TEST(BuildTaskGraph, KeepsProgramOrderAndNumbersOnEveryDevice) {
  testing::Random random(5);
  for (int i = 0; i < 100; ++i) {
    const auto made = testing::random_case(random);
    const auto program = std::make_shared<Program>(made.program);
    BuildOptions options;
    options.iterations = 3;
    const TaskGraph graph = build_task_graph(program, made.problem, options);
    std::vector<std::vector<Pass>> seen(program->shape().devices);
    for (TaskId task = 0; task < graph.size(); ++task) {
      if (graph.task_class(task).kind != TaskKind::kCompute) continue;
      auto& list = seen[graph.task_class(task).device];
      EXPECT_EQ(graph.iteration(task),
                static_cast<int>(
                    list.size() /
                    program->passes(static_cast<int>(graph.task_class(task).device)).size()));
      list.push_back(graph.pass(task));
    }
    for (int device = 0; device < program->shape().devices; ++device) {
      const auto passes = program->passes(device);
      const auto& list = seen[device];
      ASSERT_EQ(list.size(), 3 * passes.size());
      for (size_t k = 0; k < list.size(); ++k) EXPECT_EQ(list[k], passes[k % passes.size()]);
    }
  }
}

TEST(BuildTaskGraph, NamesOverlappedBlocksAndTheirMicrobatch) {
  Problem problem = testing::make_problem({1, 1, 2, 1});
  problem.stages[0].overlapped = Seconds(7);
  const auto program = std::make_shared<Program>(
      problem.shape, problem.placement,
      PassLists{{make_pass(kF, 0), make_pass(PassKind::kFB, 0), make_pass(kBW, 1)}},
      std::vector<OverlappedPair>{{make_pass(kF, 1), make_pass(kBW, 0)}});
  BuildOptions options;
  options.iterations = 2;
  const TaskGraph graph = build_task_graph(program, problem, options);
  EXPECT_EQ(graph.name(1), "0F1&0BW0");
  EXPECT_EQ(graph.microbatch(1), 1);
  EXPECT_EQ(graph.task_class(1).seconds, Seconds(7));
  EXPECT_EQ(graph.name(5), "0F1&0BW0");
  EXPECT_EQ(graph.iteration(5), 1);
  EXPECT_EQ(graph.microbatch(5), 1);
}

TEST(Iterations, FollowEachOtherWithoutCostWhenThereIsNoOptimizer) {
  const auto [problem, program] = planned("1f1b", {4, 1, 8, 1}, {10, 12, 8, 0});
  BuildOptions options;
  options.iterations = 3;
  options.optimizer = options.collective = Seconds(1000);  // of no account under kNone
  const double makespan = 8 * 30 + 3 * 30;
  EXPECT_EQ(ends_of_iterations(build_task_graph(program, problem, options)),
            (std::vector<double>{makespan, 2 * makespan, 3 * makespan}));
}

TEST(Iterations, WaitForTheReductionAndTheSlowestOptimizerUnderAllReduce) {
  const auto [problem, program] = planned("1f1b", {4, 1, 8, 1}, {10, 12, 8, 0});
  BuildOptions options;
  options.iterations = 3;
  options.sync = OptimizerSync::kAllReduce;
  options.collective = Seconds(5);
  options.optimizer = Seconds(3);
  options.slowdown_of_rank = {1, 1, 1, 1};
  const double period = 8 * 30 + 3 * 30 + 5 + 3;
  const TaskGraph graph = build_task_graph(program, problem, options);
  EXPECT_EQ(ends_of_iterations(graph), (std::vector<double>{period, 2 * period, 3 * period}));
  EXPECT_EQ(count(graph, TaskKind::kOptimizer), 3U * 4U);
  EXPECT_EQ(graph.name(static_cast<TaskId>(graph.size() - 2)), "optimizer of device 3");
}

TEST(Iterations, OverlapTheirRampsUnderPostValidation) {
  // ZB-H2 has no bubble where F = B = W: in the steady state a device never idles.
  const auto [problem, program] = planned("zb-h2", {4, 1, 12, 1}, {1, 1, 1, 0});
  BuildOptions options;
  options.iterations = 5;
  options.sync = OptimizerSync::kPostValidation;
  options.optimizer = Seconds(2);
  const TaskGraph graph = build_task_graph(program, problem, options);
  EXPECT_EQ(count(graph, TaskKind::kCollective), 0U);
  EXPECT_EQ(count(graph, TaskKind::kOptimizer), 5U * 4U);
  const auto ends = ends_of_iterations(graph);
  for (size_t i = 1; i < ends.size(); ++i) EXPECT_EQ(ends[i] - ends[i - 1], 12 * 3 + 2);
  EXPECT_EQ(ends[0], 12 * 3 + 3 + 2) << "alone it has a ramp of p-1 forwards";
}

TEST(Iterations, LetEachDeviceGoOnAfterItsOwnOptimizerUnderPostValidation) {
  const auto [problem, program] = planned("1f1b", {2, 1, 2, 1}, {1, 1, 1, 0});
  BuildOptions options;
  options.iterations = 2;
  options.sync = OptimizerSync::kPostValidation;
  options.optimizer = Seconds(1);
  const TaskGraph graph = build_task_graph(program, problem, options);
  std::vector<TaskId> optimizer(2);
  std::vector<bool> checked(2, false);
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskClass& of = graph.task_class(task);
    if (of.kind == TaskKind::kOptimizer && graph.iteration(task) == 0) optimizer[of.device] = task;
    if (of.kind != TaskKind::kCompute || graph.iteration(task) == 0 || checked[of.device]) continue;
    checked[of.device] = true;  // the device's first pass of the second iteration
    EXPECT_EQ(waits_for(graph, task).front(), optimizer[of.device]);
  }
  EXPECT_EQ(checked, std::vector<bool>(2, true));
}

TEST(Pipelines, AreCopiesThatShareNothingButTheEndOfTheIteration) {
  const auto [problem, program] = planned("1f1b", {2, 1, 4, 1}, {1, 1, 1, 1});
  BuildOptions options;
  options.slowdown_of_rank = {1, 1, 1, 3};
  options.iterations = 2;
  const TaskGraph graph = build_task_graph(program, problem, {{0, 2}, {3, 1}}, options);
  EXPECT_EQ(graph.devices(), 4);
  EXPECT_EQ(graph.rank(1), 2);
  EXPECT_EQ(graph.rank(2), 3);
  EXPECT_EQ(graph.size(), 2U * (2U * (2U * 8U + 8U) + 1U));
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskClass& of = graph.task_class(task);
    if (of.kind == TaskKind::kCollective) continue;
    for (const TaskId other : graph.waits_for(task)) {
      if (graph.task_class(other).kind == TaskKind::kCollective) continue;
      EXPECT_EQ(graph.task_class(other).pipeline, of.pipeline) << graph.name(task);
    }
    if (of.kind == TaskKind::kCompute) {
      const double plain = of.pass == kF ? 1 : 2;
      EXPECT_EQ(of.seconds.value(), of.device == 2 ? 3 * plain : plain) << "rank 3 is slow";
    }
  }
  const TaskGraph alone = build_task_graph(program, problem, {{3, 1}}, options);
  EXPECT_EQ(ends_of_iterations(graph), ends_of_iterations(alone)) << "the slow one decides";
}

TEST(Pipelines, NameTheirTasksByTheirOwnDevices) {
  const auto [problem, program] = planned("1f1b", {2, 1, 1, 1}, {1, 1, 1, 1});
  const TaskGraph graph = build_task_graph(program, problem, {{0, 1}, {2, 3}}, {});
  ASSERT_EQ(graph.size(), 13U);
  for (TaskId task = 0; task < 6; ++task) EXPECT_EQ(graph.name(task), graph.name(task + 6));
  EXPECT_EQ(graph.name(7), "0F0 -> device 1");
  EXPECT_EQ(graph.task_class(7).receiver, 3U);
}

TEST(Pipelines, AskForEachMessageOnceWithItsStagesAndRanks) {
  const auto [problem, program] = planned("1f1b", {2, 1, 4, 1}, {1, 1, 1, 1});
  BuildOptions options;
  std::vector<std::vector<int>> asked;
  options.message = [&asked](int from, int to, int rank_from, int rank_to, std::uint32_t) {
    asked.push_back({from, to, rank_from, rank_to});
    return MessageCost{Seconds(7), Seconds(2)};
  };
  const TaskGraph graph = build_task_graph(program, problem, {{5, 9}}, options);
  std::ranges::sort(asked);
  EXPECT_EQ(asked, (std::vector<std::vector<int>>{{0, 1, 5, 9}, {1, 0, 9, 5}}));
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (graph.task_class(task).kind != TaskKind::kTransfer) continue;
    EXPECT_EQ(graph.task_class(task).seconds, Seconds(7));
    EXPECT_EQ(graph.task_class(task).latency, Seconds(2));
  }
}

TEST(BuildTaskGraph, TakesTransfersOfTheBoundaryBothWays) {
  auto [problem, program] = planned("1f1b", {3, 1, 1, 1}, {1, 1, 1, 1});
  problem.stages[0].transfer = Seconds(5);
  problem.stages[1].transfer = Seconds(6);
  const TaskGraph graph = build_task_graph(program, problem);
  std::set<std::pair<std::string, double>> transfers;
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (graph.task_class(task).kind != TaskKind::kTransfer) continue;
    transfers.insert({graph.name(task), graph.task_class(task).seconds.value()});
  }
  EXPECT_EQ(transfers, (std::set<std::pair<std::string, double>>{{"0F0 -> device 1", 5},
                                                                 {"1F0 -> device 2", 6},
                                                                 {"2B0 -> device 1", 6},
                                                                 {"1B0 -> device 0", 5}}));
}

TEST(BuildTaskGraph, RefusesMoreEdgesThanItCanNumber) {
  const auto [problem, program] = planned("1f1b", {1, 1, 1, 1}, {});
  BuildOptions options;
  options.iterations = 1 << 30;
  EXPECT_THROW((void)build_task_graph(program, problem, options), InfeasibleError);
}

TEST(BuildTaskGraph, SplitsTheBytesOfABackwardBetweenBAndW) {
  auto [problem, program] = planned("zb-h1", {2, 1, 4, 1}, {});
  for (StageCost& cost : problem.stages) {
    cost.activation = Bytes(10);
    cost.weight_stash = Bytes(4);
  }
  const TaskGraph graph = build_task_graph(program, problem);
  for (const TaskClass& of : graph.classes()) {
    if (of.kind != TaskKind::kCompute) continue;
    EXPECT_EQ(of.acquired, Bytes(of.pass == kF ? 10 : 0));
    EXPECT_EQ(of.released, Bytes(of.pass == kB ? 6 : of.pass == kW ? 4 : 0));
  }
}

// Gradients, then what joins all, then each device's own step.
TEST(BuildTaskGraph, ClosesEveryDeviceInItsOwnTime) {
  const auto [problem, program] = planned("1f1b", {2, 1, 1, 1}, {10, 12, 8, 1});
  const double passes = 2 * 30 + 2;
  BuildOptions options;
  options.sync = OptimizerSync::kAllReduce;
  options.optimizer_of_device = {Seconds(3), Seconds(20)};
  const auto end = [&, &problem = problem, &program = program] {
    return ends_of_iterations(build_task_graph(program, problem, options)).front();
  };
  // Device 1 ends 21 seconds before device 0, a message and a BW.
  EXPECT_DOUBLE_EQ(end(), passes + 3);
  options.optimizer_of_device = {Seconds(3), Seconds(30)};
  EXPECT_DOUBLE_EQ(end(), passes - 21 + 30);
  options.gradients_of_device = {Seconds(1), Seconds(24)};
  options.collective = Seconds(5);
  EXPECT_DOUBLE_EQ(end(), passes - 21 + 24 + 5 + 30);
  options.sync = OptimizerSync::kPostValidation;
  EXPECT_DOUBLE_EQ(end(), passes - 21 + 24 + 30) << "nothing joins all";
  options.sync = OptimizerSync::kNone;
  EXPECT_DOUBLE_EQ(end(), passes);
}

}  // namespace
}  // namespace pipesim::build_test
