// The graph as Boost.Graph sees it, and what it costs to hold.
#include "sim/graph/task_graph.h"

#include <algorithm>
#include <boost/graph/dag_shortest_paths.hpp>
#include <boost/graph/topological_sort.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <boost/range/iterator_range.hpp>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

#include "sim/core/error.h"
#include "sim/engine/engine.h"
#include "sim/graph/boost_rows.h"
#include "sim/graph/build.h"
#include "sim/graph/critical_path.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim::task_graph_test {
namespace {

using Edge = boost::graph_traits<BoostRows>::edge_descriptor;

TaskGraph random_graph(testing::Random& random) {
  const auto made = testing::random_case(random, /*whole_seconds=*/true);
  BuildOptions options;
  options.iterations = random.integer(1, 2);
  options.sync = static_cast<OptimizerSync>(random.integer(0, 2));
  options.collective = Seconds(random.integer(0, 3));
  options.optimizer = Seconds(random.integer(0, 3));
  std::vector<std::vector<int>> ranks;
  for (int i = random.integer(1, 2); i > 0; --i) {
    ranks.emplace_back(made.problem.shape.devices);
    std::iota(ranks.back().begin(), ranks.back().end(), 0);
  }
  return build_task_graph(std::make_shared<Program>(made.program), made.problem, ranks, options);
}

TEST(TaskGraph, IsNumberedInTheOrderThatBoostSorts) {
  testing::Random random(21);
  for (int i = 0; i < 100; ++i) {
    const TaskGraph graph = random_graph(random);
    std::vector<TaskId> order;
    boost::topological_sort(boost_rows(graph), std::back_inserter(order));  // throws on a cycle
    EXPECT_EQ(order.size(), graph.size());
    std::vector<size_t> place(graph.size());
    for (size_t at = 0; at < order.size(); ++at) place[order[at]] = at;
    for (const Edge& edge : boost::make_iterator_range(boost::edges(boost_rows(graph)))) {
      const TaskId task = boost::source(edge, boost_rows(graph));
      const TaskId waited = boost::target(edge, boost_rows(graph));
      EXPECT_LT(waited, task);
      EXPECT_LT(place[waited], place[task]);
    }
  }
}

TEST(TaskGraph, HandsBoostTheEdgesThatItShowsItself) {
  testing::Random random(22);
  const TaskGraph graph = random_graph(random);
  EXPECT_EQ(boost::num_vertices(boost_rows(graph)), graph.size());
  EXPECT_EQ(boost::num_edges(boost_rows(graph)), graph.edges().size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    const auto [begin, end] = boost::out_edges(task, boost_rows(graph));
    std::vector<TaskId> targets;
    for (auto edge = begin; edge != end; ++edge)
      targets.push_back(target(*edge, boost_rows(graph)));
    EXPECT_TRUE(std::ranges::equal(targets, graph.waits_for(task)));
  }
}

TEST(TaskGraph, WaitsForNothingTwice) {
  testing::Random random(23);
  for (int i = 0; i < 100; ++i) {
    const TaskGraph graph = random_graph(random);
    for (TaskId task = 0; task < graph.size(); ++task) {
      std::vector<TaskId> waited(graph.waits_for(task).begin(), graph.waits_for(task).end());
      std::ranges::sort(waited);
      EXPECT_EQ(std::ranges::adjacent_find(waited), waited.end()) << graph.name(task);
    }
  }
}

// Seconds of the longest chain that ends with `task`, by Boost: shortest paths along negated
// durations.
double longest_chain(const TaskGraph& graph, TaskId task) {
  const auto weight = boost::make_function_property_map<Edge>([&graph](const Edge& edge) {
    return -graph.task_class(target(edge, boost_rows(graph))).seconds.value();
  });
  constexpr double kUnreached = std::numeric_limits<double>::max();
  std::vector<double> distance(graph.size());
  const auto index = boost::get(boost::vertex_index, boost_rows(graph));
  boost::dag_shortest_paths(boost_rows(graph), task,
                            boost::weight_map(weight).distance_map(
                                boost::make_iterator_property_map(distance.begin(), index)));
  double longest = 0;
  for (const double each : distance) {
    if (each != kUnreached) longest = std::max(longest, -each);
  }
  return longest + graph.task_class(task).seconds.value();
}

// Both add up the same durations in different orders; those of overlapped blocks are no integers.
TEST(TaskGraph, HasTheLongestPathsThatReplayFinds) {
  testing::Random random(24);
  for (int i = 0; i < 40; ++i) {
    const TaskGraph graph = random_graph(random);
    const Timeline timeline = make_replay_engine()->run(graph, {}, {});
    for (TaskId task = 0; task < graph.size(); task += 3) {
      EXPECT_DOUBLE_EQ(timeline.end[task], longest_chain(graph, task)) << graph.name(task);
    }
  }
}

TEST(CriticalPath, IsAnUnbrokenChainFromTheStartToTheLastEnd) {
  testing::Random random(25);
  for (int i = 0; i < 100; ++i) {
    const TaskGraph graph = random_graph(random);
    const Timeline timeline = make_replay_engine()->run(graph, {}, {});
    const auto path = critical_path(graph, timeline);
    ASSERT_FALSE(path.empty());
    EXPECT_EQ(timeline.start[path.front()], 0);
    EXPECT_TRUE(graph.waits_for(path.front()).empty());
    EXPECT_EQ(timeline.end[path.back()], std::ranges::max(timeline.end));
    for (size_t k = 1; k < path.size(); ++k) {
      EXPECT_EQ(timeline.start[path[k]], timeline.end[path[k - 1]]);
      const auto waited = graph.waits_for(path[k]);
      EXPECT_NE(std::ranges::find(waited, path[k - 1]), waited.end());
    }
  }
}

TEST(TaskGraph, TakesAtMost48BytesPerTaskWithProgramAndTimeline) {
  for (const Schedule* schedule : schedules()) {
    const int devices = testing::kSanitized ? 16 : 32;
    const Shape shape{devices, schedule->default_chunks, 4 * devices, 1};
    Problem problem = testing::make_problem(
        shape, schedule->place(devices, schedule->default_chunks), {1, 1, 1, 1});
    for (StageCost& cost : problem.stages) cost.overlapped = Seconds(3);
    ASSERT_FALSE(schedule->refusal(problem)) << schedule->name;
    const auto program = std::make_shared<Program>(schedule->plan(problem));
    const TaskGraph graph = build_task_graph(program, problem);
    const Timeline timeline = make_replay_engine()->run(graph, {}, {});
    const size_t bytes = graph.resident_bytes() + program->size() * sizeof(Pass) +
                         (timeline.start.capacity() + timeline.end.capacity()) * sizeof(double);
    EXPECT_LE(bytes, 48 * graph.size()) << schedule->name;
    EXPECT_GE(bytes, 28 * graph.size()) << "not counted in full";
  }
}

TEST(TaskGraph, RefusesArraysOfUnequalLength) {
  TaskGraph::Parts parts;
  parts.classes.resize(1);
  parts.class_of = {0, 0};
  parts.number = {0, 0};
  parts.row = {0, 0};
  EXPECT_THROW(TaskGraph{parts}, LogicError);
  parts.row = {0, 0, 0};
  EXPECT_NO_THROW(TaskGraph{parts});
  parts.number = {0};
  EXPECT_THROW(TaskGraph{parts}, LogicError);
}

}  // namespace
}  // namespace pipesim::task_graph_test
