// Processes that evaluate, and what becomes of points when they die.
#include "sim/sweep/workers.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/sweep/run_sweep.h"
#include "tests/folder.h"
#include "tests/sweep/files.h"

namespace pipesim::workers_test {
namespace {

using testing::kSmallSweep;
using Kind = WorkerEvent::Kind;

std::vector<WorkerEvent> collect(Workers& workers, size_t count) {
  std::vector<WorkerEvent> all;
  for (int turn = 0; turn < 200 && all.size() < count; ++turn) {
    for (WorkerEvent& event : workers.wait(100)) all.push_back(std::move(event));
  }
  return all;
}

TEST(LocalWorkers, AnswerInTheOrderInWhichPointsWereGiven) {
  LocalWorkers workers(2, [](std::uint32_t point) { return std::to_string(point * point); });
  workers.give(0, std::array<std::uint32_t, 3>{3, 1, 2});
  workers.give(0, std::array<std::uint32_t, 1>{9});
  const auto events = collect(workers, 4);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].text + events[1].text + events[2].text + events[3].text, "91481");
  for (const WorkerEvent& event : events) EXPECT_EQ(event.worker, 0);
}

TEST(LocalWorkers, AreReplacedWhenTheyDie) {
  LocalWorkers workers(1, [](std::uint32_t point) {
    if (point == 7) std::raise(SIGKILL);
    return std::to_string(point);
  });
  workers.give(0, std::array<std::uint32_t, 3>{1, 7, 2});
  const auto events = collect(workers, 2);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].text, "1");
  EXPECT_EQ(events[1].kind, Kind::kDied);
  EXPECT_NE(events[1].text.find("signal 9"), std::string::npos) << events[1].text;
  workers.give(0, std::array<std::uint32_t, 1>{5});
  EXPECT_EQ(collect(workers, 1).at(0).text, "5");
}

TEST(LocalWorkers, LeaveInterruptsToTheirParent) {
  LocalWorkers workers(1, [](std::uint32_t) {
    std::raise(SIGINT);
    std::raise(SIGTERM);
    return std::string("alive");
  });
  workers.give(0, std::array<std::uint32_t, 1>{0});
  EXPECT_EQ(collect(workers, 1).at(0).text, "alive");
}

class RunSweep : public testing::Folder {
 protected:
  SweepRun run(EvaluatePoint evaluate, int processes = 2, SweepHooks hooks = {}) {
    LocalWorkers workers(processes, std::move(evaluate));
    ResultStore store(folder_.string(), sweep_, "1", {});
    return run_sweep(sweep_, store, workers, hooks);
  }
  [[nodiscard]] size_t stored() const {
    const ResultStore store(folder_.string(), sweep_, "1", {});
    return static_cast<size_t>(std::ranges::count(store.stored(), true));
  }
  const Sweep sweep_{"s.yaml", kSmallSweep};
  Evaluator evaluator_{sweep_};
};

TEST_F(RunSweep, HandsOutEveryResultAsItArrives) {
  std::vector<bool> seen(12);
  SweepHooks hooks;
  hooks.result = [&seen](const PointResult& result) {
    EXPECT_FALSE(seen.at(result.point));
    EXPECT_NE(result.outcome, PointResult::Outcome::kFault);
    seen[result.point] = true;
  };
  (void)run([this](std::uint32_t point) { return to_bytes(evaluator_(point)); }, 2, hooks);
  EXPECT_EQ(std::ranges::count(seen, true), 12);
}

TEST_F(RunSweep, StoresEveryPointOnceAndThenHasNothingToDo) {
  const auto evaluate = [this](std::uint32_t point) { return to_bytes(evaluator_(point)); };
  EXPECT_EQ(run(evaluate).progress.evaluated, 12U);
  const SweepRun again = run(evaluate);
  EXPECT_EQ(again.progress.evaluated, 0U);
  EXPECT_EQ(again.progress.before, 12U);
}

TEST_F(RunSweep, TriesAPointAgainWhoseProcessDied) {
  const std::string marker = path("died");
  const SweepRun done = run([&](std::uint32_t point) {
    if (point == 5 && !std::filesystem::exists(marker)) {
      std::ofstream{marker}.put('x');
      std::raise(SIGKILL);
    }
    return to_bytes(evaluator_(point));
  });
  EXPECT_TRUE(std::filesystem::exists(marker));
  EXPECT_EQ(done.progress.evaluated, 12U);
  EXPECT_TRUE(done.lost.empty());
}

TEST_F(RunSweep, GivesAPointUpThatEndsItsProcessTwiceAndStoresNothingOfIt) {
  const SweepRun done = run([&](std::uint32_t point) {
    if (point == 5) std::raise(SIGKILL);
    return to_bytes(evaluator_(point));
  });
  ASSERT_EQ(done.lost.size(), 1U);
  EXPECT_EQ(done.lost.begin()->first, 5U);
  EXPECT_NE(done.lost.begin()->second.find("signal 9"), std::string::npos);
  EXPECT_EQ(stored(), 11U);
}

TEST_F(RunSweep, StopsWhenAskedAndGoesOnFromThere) {
  int asked = 0;
  SweepHooks hooks;
  hooks.stopped = [&asked] { return ++asked > 3; };
  const auto evaluate = [this](std::uint32_t point) {
    ::usleep(20'000);
    return to_bytes(evaluator_(point));
  };
  const SweepRun first = run(evaluate, 1, hooks);
  EXPECT_TRUE(first.stopped);
  EXPECT_LT(first.progress.evaluated, 12U);
  EXPECT_EQ(stored(), first.progress.evaluated);
  EXPECT_EQ(run(evaluate).progress.evaluated, 12U - first.progress.evaluated);
}

}  // namespace
}  // namespace pipesim::workers_test
