#include "sim/engine/lanes.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/engine/engine.h"
#include "sim/engine/jitter.h"
#include "sim/engine/replay_program.h"
#include "sim/execution/with_offload.h"
#include "sim/execution/with_recompute.h"
#include "sim/graph/build.h"
#include "sim/graph/renumber.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::lanes_test {
namespace {

// The same stages and boundaries at other costs.
Problem recosted(testing::Random& random, const Problem& problem) {
  Problem other = testing::random_problem(random, problem.shape, problem.placement, false);
  for (StageCost& cost : other.stages) {
    cost.copy_out = random.real(0.1, 5) * cost.forward;
    cost.copy_in = random.real(0.1, 5) * cost.forward;
  }
  return other;
}

// Sums of a timeline's passes, task by task.
RunTimes summed(const TaskGraph& graph, const Timeline& timeline) {
  RunTimes times(graph.devices());
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskClass& of = graph.task_class(task);
    const double taken = timeline.end[task] - timeline.start[task];
    if (of.kind == TaskKind::kCollective) {
      for (DeviceTimes& device : times) device.period = timeline.end[task];
    } else if (!is_beside_compute(of.kind)) {
      DeviceTimes& device = times[of.device];
      device.busy += taken;
      if (of.kind == TaskKind::kOptimizer) continue;
      device.first_start = std::min(device.first_start, timeline.start[task]);
      device.last_end = timeline.end[task];
      device.pass_busy += taken;
      if (of.pass == PassKind::kR) device.recompute += taken;
    }
  }
  return times;
}

// Passes of a device follow each other.
std::vector<Bytes> peaks(const TaskGraph& graph) {
  std::vector<Bytes> held(graph.devices());
  std::vector<Bytes> most(held);
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskClass& of = graph.task_class(task);
    held[of.device] = held[of.device] + of.acquired;
    most[of.device] = std::max(most[of.device], held[of.device]);
    held[of.device] = held[of.device] - of.released;
  }
  return most;
}

std::vector<double> numbers(const RunTimes& times) {
  std::vector<double> all;
  for (const DeviceTimes& of : times) {
    all.insert(all.end(),
               {of.first_start, of.last_end, of.pass_busy, of.busy, of.recompute, of.period});
  }
  return all;
}

// Every run is the timeline under the seconds of its seed.
void expect_jittered_runs(const TaskGraph& graph, size_t runs) {
  constexpr double kSigma = 0.2;
  constexpr std::uint64_t kFirst = 11;
  const std::vector<RunTimes> times = replay_jittered(graph, kSigma, kFirst, runs);
  const std::vector<RunTimes> narrow =
      replay_jittered(graph, kSigma, kFirst, runs, LaneVectors::kEverywhere);
  ASSERT_EQ(times.size(), runs);
  ASSERT_EQ(narrow.size(), runs);
  for (size_t run = 0; run < runs; ++run) {
    const Timeline single =
        make_replay_engine()->run(graph, {}, jittered(graph, kSigma, kFirst + run));
    ASSERT_EQ(numbers(times[run]), numbers(summed(graph, single))) << "run " << run;
    ASSERT_EQ(numbers(narrow[run]), numbers(times[run])) << "run " << run;
  }
}

// Every lane is the single run of a graph that was built for its costs.
void expect_single_runs(testing::Random& random, const std::shared_ptr<const Program>& program,
                        const Problem& problem, size_t lanes, const BuildOptions& options = {}) {
  std::vector<TaskGraph> graphs;
  std::vector<std::vector<double>> seconds;
  for (size_t lane = 0; lane < lanes; ++lane) {
    graphs.push_back(build_task_graph(program, recosted(random, problem), options));
    auto& of_lane = seconds.emplace_back();
    for (const TaskClass& of : graphs.back().classes()) of_lane.push_back(of.seconds.value());
  }
  const std::vector<RunTimes> times = replay_lanes(graphs.front(), seconds);
  const std::vector<RunTimes> narrow =
      replay_lanes(graphs.front(), seconds, LaneVectors::kEverywhere);
  ASSERT_EQ(times.size(), lanes);
  ASSERT_EQ(narrow.size(), lanes);
  for (size_t lane = 0; lane < lanes; ++lane) {
    const Timeline single = make_replay_engine()->run(graphs[lane], {}, {});
    ASSERT_EQ(numbers(times[lane]), numbers(summed(graphs[lane], single))) << "lane " << lane;
    ASSERT_EQ(numbers(narrow[lane]), numbers(times[lane])) << "lane " << lane;
  }
  expect_jittered_runs(graphs.front(), lanes);
}

// A run without a graph gives the times of a run of its graph.
void expect_as_with_graph(const std::shared_ptr<const Program>& program, const Problem& problem,
                          const std::vector<std::vector<int>>& ranks,
                          const BuildOptions& options = {}) {
  const TaskGraph graph = build_task_graph(program, problem, ranks, options);
  const ProgramRun run = replay_program(program, problem, ranks, options);
  EXPECT_EQ(run.tasks, graph.size());
  EXPECT_EQ(numbers(run.times), numbers(summed(graph, make_replay_engine()->run(graph, {}, {}))));
  EXPECT_EQ(run.peaks, peaks(graph));
}

TEST(ReplayProgram, IsTheGraphOfEverySchedule) {
  testing::Random random(74);
  for (const Schedule* schedule : schedules()) {
    SCOPED_TRACE(schedule->name);
    const Shape shape{4, schedule->default_chunks, 8, schedule->default_splits};
    Problem problem =
        recosted(random, testing::make_problem(shape, schedule->place(4, shape.chunks)));
    if (schedule->refusal(for_planning(problem))) continue;
    const auto program = std::make_shared<const Program>(schedule->plan(for_planning(problem)));
    if (program->copies() != nullptr) continue;
    problem.stages.front().activation = Bytes(7);
    expect_as_with_graph(program, problem, {{0, 1, 2, 3}});
    if (!schedule->calls) continue;
    BuildOptions blocking;
    blocking.blocking = schedule->calls;
    expect_as_with_graph(program, problem, {{0, 1, 2, 3}}, blocking);
  }
}

TEST(ReplayProgram, ClosesAnIterationOfSeveralPipelinesAlike) {
  testing::Random random(75);
  const Problem problem = recosted(random, testing::make_problem({4, 1, 8, 1}));
  const auto program = std::make_shared<const Program>(
      with_recompute(find_schedule("zb-h1")->plan(for_planning(problem)), 1));
  BuildOptions options;
  options.optimizer = Seconds(0.7);
  options.gradients_of_device = {Seconds(0.1), Seconds(0.4), Seconds(0.2), Seconds(0)};
  options.slowdown_of_rank = {1, 1.5, 1, 1, 1, 1, 2, 1};
  for (const OptimizerSync sync : {OptimizerSync::kNone, OptimizerSync::kAllReduce}) {
    for (const Seconds collective : {Seconds(0), Seconds(0.3)}) {
      options.sync = sync;
      options.collective = collective;
      expect_as_with_graph(program, problem, {{0, 1, 2, 3}, {4, 5, 6, 7}}, options);
    }
  }
}

TEST(ReplayProgram, RefusesWhatNeedsATimeline) {
  testing::Random random(76);
  const Problem problem = recosted(random, testing::make_problem({4, 1, 8, 1}));
  const auto program = std::make_shared<const Program>(find_schedule("1f1b")->plan(problem));
  BuildOptions options;
  options.iterations = 2;
  EXPECT_THROW((void)replay_program(program, problem, {{0, 1, 2, 3}}, options), LogicError);
  const auto copying = std::make_shared<const Program>(with_offload(*program, problem, 1));
  EXPECT_THROW((void)replay_program(copying, problem, {{0, 1, 2, 3}}, {}), LogicError);
}

TEST(Lanes, AreTheSingleRunsOfEverySchedule) {
  testing::Random random(71);
  for (const Schedule* schedule : schedules()) {
    SCOPED_TRACE(schedule->name);
    const Shape shape{4, schedule->default_chunks, 8, schedule->default_splits};
    const Problem problem =
        recosted(random, testing::make_problem(shape, schedule->place(4, shape.chunks)));
    if (schedule->refusal(for_planning(problem))) continue;
    const auto program = std::make_shared<const Program>(schedule->plan(for_planning(problem)));
    for (const size_t lanes : {1, 7, 8, 16, 21}) {
      expect_single_runs(random, program, problem, lanes);
    }
    if (!schedule->calls || program->copies() != nullptr) continue;
    BuildOptions blocking;
    blocking.blocking = schedule->calls;
    expect_single_runs(random, program, problem, 16, blocking);
  }
}

TEST(Lanes, AreTheSingleRunsOfWhatOffloads) {
  testing::Random random(72);
  for (int round = 0; round < 50; ++round) {
    const testing::RandomCase drawn = testing::random_case(random);
    Problem problem = recosted(random, drawn.problem);
    for (StageCost& cost : problem.stages) cost.activation = cost.activation + cost.weight_stash;
    const auto program =
        std::make_shared<const Program>(with_offload(drawn.program, problem, problem.shape.chunks));
    expect_single_runs(random, program, problem, 8);
  }
}

TEST(Lanes, CountWhatClosesAnIterationAndWhatIsRunAgain) {
  testing::Random random(73);
  const Problem problem = recosted(random, testing::make_problem({4, 1, 8, 1}));
  const auto program = std::make_shared<const Program>(
      with_recompute(find_schedule("1f1b")->plan(for_planning(problem)), 1));
  BuildOptions options;
  options.sync = OptimizerSync::kAllReduce;
  options.collective = Seconds(0.3);
  options.optimizer = Seconds(0.7);
  options.gradients_of_device = {Seconds(0.1), Seconds(0.4), Seconds(0.2), Seconds(0)};
  for (const size_t lanes : {1, 8}) {
    expect_single_runs(random, program, problem, lanes, options);
  }
}

TEST(Lanes, DrawForMoreTasksThanAtOnce) {
  const Problem problem = testing::make_problem({4, 1, 200, 1});
  const TaskGraph graph = build_task_graph(
      std::make_shared<const Program>(find_schedule("zb-h1")->plan(for_planning(problem))),
      problem);
  ASSERT_GT(graph.size(), 2000U);
  for (const size_t runs : {2, 11}) expect_jittered_runs(graph, runs);
}

TEST(Lanes, RefuseOtherNumbersOfSeconds) {
  const Problem problem = testing::make_problem({2, 1, 2, 1});
  const auto program = std::make_shared<const Program>(find_schedule("1f1b")->plan(problem));
  const TaskGraph graph = build_task_graph(program, problem);
  const std::vector<std::vector<double>> seconds{std::vector<double>(1, 1.0)};
  EXPECT_THROW((void)replay_lanes(graph, seconds), LogicError);
  BuildOptions twice;
  twice.iterations = 2;
  const TaskGraph two = build_task_graph(program, problem, twice);
  EXPECT_THROW((void)replay_lanes(two, {}), LogicError);
  EXPECT_THROW((void)replay_jittered(two, 0.1, 1, 8), LogicError);
}

}  // namespace
}  // namespace pipesim::lanes_test
