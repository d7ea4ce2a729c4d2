#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <memory>

#include "sim/engine/engine.h"
#include "sim/engine/jitter.h"
#include "sim/execution/evaluate.h"
#include "sim/graph/build.h"
#include "tests/pipeline/problems.h"

namespace pipesim::replay_test {
namespace {

TaskGraph graph_of(const testing::RandomCase& made, const BuildOptions& options = {}) {
  return build_task_graph(std::make_shared<Program>(made.program), made.problem, options);
}

TaskGraph two_devices(double transfer) {
  const Shape shape{2, 1, 1, 1};
  const std::vector<Pass> list{make_pass(PassKind::kF, 0), make_pass(PassKind::kBW, 0)};
  return build_task_graph(
      std::make_shared<Program>(shape, Placement::looped(2, 1), PassLists{list, list}),
      testing::make_problem(shape, {10, 12, 8, transfer}));
}

std::vector<double> plain_seconds(const TaskGraph& graph) {
  std::vector<double> seconds;
  for (TaskId task = 0; task < graph.size(); ++task) {
    seconds.push_back(graph.task_class(task).seconds.value());
  }
  return seconds;
}

TEST(Replay, LetsAMessageArriveItsTransferAfterTheEndOfItsPass) {
  // 0F0, 0F0 -> 1, 1F0, 1BW0, 1B0 -> 0, 0BW0, end of the iteration
  const Timeline timeline = make_replay_engine()->run(two_devices(1.5), {}, {});
  EXPECT_EQ(timeline.start, (LargeVector<double>{0, 10, 11.5, 21.5, 41.5, 43, 63}));
  EXPECT_EQ(timeline.end, (LargeVector<double>{10, 11.5, 21.5, 41.5, 43, 63, 63}));
  EXPECT_FALSE(timeline.shared_links);
}

TEST(Replay, StartsEveryTaskAtTheLatestEndOfWhatItWaitsFor) {
  testing::Random random(31);
  for (int i = 0; i < 100; ++i) {
    const TaskGraph graph = graph_of(testing::random_case(random));
    const Timeline timeline = make_replay_engine()->run(graph, {}, {});
    for (TaskId task = 0; task < graph.size(); ++task) {
      double ready = 0;
      for (const TaskId waited : graph.waits_for(task)) {
        ready = std::max(ready, timeline.end[waited]);
      }
      EXPECT_EQ(timeline.start[task], ready);
      EXPECT_EQ(timeline.end[task], ready + graph.task_class(task).seconds.value());
    }
  }
}

TEST(Replay, GivesEveryDeviceTheTimesOfEvaluateToTheLastBit) {
  testing::Random random(32);
  for (int i = 0; i < 500; ++i) {
    const auto made = testing::random_case(random);
    const TaskGraph graph = graph_of(made);
    const Timeline timeline = make_replay_engine()->run(graph, {}, {});
    const Evaluation result = evaluate(made.program, made.problem);
    const auto devices = static_cast<size_t>(made.program.shape().devices);
    std::vector<double> first(devices, INFINITY), last(devices, 0), busy(devices, 0);
    for (TaskId task = 0; task < graph.size(); ++task) {
      const TaskClass& of = graph.task_class(task);
      if (of.kind != TaskKind::kCompute) continue;
      first[of.device] = std::min(first[of.device], timeline.start[task]);
      last[of.device] = std::max(last[of.device], timeline.end[task]);
      busy[of.device] += of.seconds.value();
    }
    for (size_t d = 0; d < devices; ++d) {
      EXPECT_EQ(result.devices[d].first_start.value(), first[d]) << "case " << i;
      EXPECT_EQ(result.devices[d].last_end.value(), last[d]) << "case " << i;
      EXPECT_EQ(result.devices[d].busy.value(), busy[d]) << "case " << i;
    }
    EXPECT_EQ(result.makespan.value(),
              std::ranges::max(timeline.end) - std::ranges::min(timeline.start));
  }
}

TEST(Replay, GivesTheSameTimelineEveryTime) {
  testing::Random random(33);
  const TaskGraph graph = graph_of(testing::random_case(random));
  const auto engine = make_replay_engine();
  const Timeline once = engine->run(graph, {}, {});
  const Timeline again = engine->run(graph, {}, {});
  EXPECT_EQ(once.start, again.start);
  EXPECT_EQ(once.end, again.end);
  EXPECT_EQ(engine->name(), "replay");
}

TEST(Replay, TakesTheSecondsOfEachTaskWhenTheyAreGiven) {
  const TaskGraph graph = two_devices(1);
  std::vector<double> seconds = plain_seconds(graph);
  const auto engine = make_replay_engine();
  EXPECT_EQ(engine->run(graph, {}, seconds).end, engine->run(graph, {}, {}).end);
  seconds[2] += 100;  // 1F0
  EXPECT_EQ(engine->run(graph, {}, seconds).end.back(),
            engine->run(graph, {}, {}).end.back() + 100);
}

TEST(Replay, RunsOneTimelinePerSetOfSecondsInTheirOrder) {
  const TaskGraph graph = two_devices(1);
  std::vector<std::vector<double>> sets(3, plain_seconds(graph));
  sets[1][0] = 50;
  sets[2][0] = 20;
  const auto timelines = make_replay_engine()->run_all(graph, {}, sets);
  ASSERT_EQ(timelines.size(), 3U);
  EXPECT_EQ(timelines[0].end[0], 10);
  EXPECT_EQ(timelines[1].end[0], 50);
  EXPECT_EQ(timelines[2].end[0], 20);
}

// A graph large enough for statistics: 20,000 passes of 1 second.
TaskGraph many_passes() {
  const Shape shape{2, 1, 5000, 1};
  PassLists lists(2);
  for (auto& list : lists) {
    for (int i = 0; i < shape.microbatches; ++i) {
      list.push_back(make_pass(PassKind::kF, i));
      list.push_back(make_pass(PassKind::kBW, i));
    }
  }
  return build_task_graph(std::make_shared<Program>(shape, Placement::looped(2, 1), lists),
                          testing::make_problem(shape, {1, 0.5, 0.5, 0.25}));
}

TEST(Jitter, GivesTheSameSecondsForTheSameSeedAlone) {
  const TaskGraph graph = two_devices(1);
  EXPECT_EQ(jittered(graph, 0.1, 7), jittered(graph, 0.1, 7));
  EXPECT_NE(jittered(graph, 0.1, 7), jittered(graph, 0.1, 8));
}

TEST(Jitter, IsAFixedSequenceOfNumbers) {
  const auto seconds = jittered(two_devices(1), 0.1, 42);
  ASSERT_EQ(seconds.size(), 7U);
  EXPECT_DOUBLE_EQ(seconds[0], 9.2865442848799447);
  EXPECT_DOUBLE_EQ(seconds[2], 9.178478953181763);
}

TEST(Jitter, ChangesComputeAndLeavesMessagesAlone) {
  const TaskGraph graph = many_passes();
  const auto seconds = jittered(graph, 0.05, 1);
  for (TaskId task = 0; task < graph.size(); ++task) {
    const TaskClass& of = graph.task_class(task);
    if (of.kind == TaskKind::kCompute) {
      EXPECT_NE(seconds[task], of.seconds.value());
      EXPECT_GT(seconds[task], 0);
    } else {
      EXPECT_EQ(seconds[task], of.seconds.value());
    }
  }
}

TEST(Jitter, HasMeanOneAndTheSpreadAskedFor) {
  const TaskGraph graph = many_passes();
  const double sigma = 0.05;
  const auto seconds = jittered(graph, sigma, 2);
  double sum = 0, log_sum = 0, log_squares = 0;
  int passes = 0;
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (graph.task_class(task).kind != TaskKind::kCompute) continue;
    sum += seconds[task];
    log_sum += std::log(seconds[task]);
    log_squares += std::log(seconds[task]) * std::log(seconds[task]);
    ++passes;
  }
  ASSERT_EQ(passes, 20000);
  const double log_mean = log_sum / passes;
  // Four standard errors.
  EXPECT_NEAR(sum / passes, 1, 4 * sigma / std::sqrt(passes));
  EXPECT_NEAR(log_mean, -sigma * sigma / 2, 4 * sigma / std::sqrt(passes));
  EXPECT_NEAR(std::sqrt(log_squares / passes - log_mean * log_mean), sigma,
              4 * sigma / std::sqrt(2.0 * passes));
}

TEST(Jitter, OfNothingChangesNothing) {
  const TaskGraph graph = two_devices(1);
  EXPECT_EQ(jittered(graph, 0, 3), plain_seconds(graph));
}

}  // namespace
}  // namespace pipesim::replay_test
