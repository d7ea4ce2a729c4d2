#include "sim/engine/lanes.h"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/engine/engine.h"
#include "sim/execution/with_offload.h"
#include "sim/graph/build.h"
#include "sim/graph/renumber.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim {
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

// Every lane is the single run of a graph that was built for its costs.
void expect_single_runs(testing::Random& random, const std::shared_ptr<const Program>& program,
                        const Problem& problem, size_t lanes, const BuildOptions& options = {}) {
  std::vector<TaskGraph> graphs;
  for (size_t lane = 0; lane < lanes; ++lane) {
    graphs.push_back(build_task_graph(program, recosted(random, problem), options));
  }
  std::vector<double> seconds;
  for (size_t of = 0; of < graphs.front().classes().size(); ++of) {
    for (const TaskGraph& graph : graphs) seconds.push_back(graph.classes()[of].seconds.value());
  }
  LaneTimes times{3, {1, 2, 3}};  // of another use
  replay_lanes(graphs.front(), seconds, lanes, times);
  ASSERT_EQ(times.end.size(), graphs.front().size() * lanes);
  for (size_t lane = 0; lane < lanes; ++lane) {
    const Timeline single = make_replay_engine()->run(graphs[lane], {}, {});
    for (TaskId task = 0; task < graphs[lane].size(); ++task) {
      ASSERT_EQ(times.end_of(task, lane), single.end[task]) << "lane " << lane << " task " << task;
    }
  }
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

TEST(Lanes, RefuseOtherNumbersOfSeconds) {
  const Shape shape{2, 1, 2, 1};
  const Problem problem = testing::make_problem(shape);
  const TaskGraph graph = build_task_graph(
      std::make_shared<const Program>(find_schedule("1f1b")->plan(problem)), problem);
  const std::vector<double> seconds(graph.classes().size(), 1);
  LaneTimes times;
  EXPECT_THROW(replay_lanes(graph, seconds, 2, times), LogicError);
}

}  // namespace
}  // namespace pipesim
