#include "sim/engine/simgrid.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "models/cluster.h"
#include "sim/core/error.h"
#include "sim/core/stop.h"
#include "sim/engine/jitter.h"
#include "sim/graph/build.h"
#include "sim/planning/schedule.h"

namespace pipesim::simgrid_test {
namespace {

constexpr double kExact = 1e-11;

// GPipe on nodes of `pipelines` GPUs with one card each: device d of pipeline i is GPU i of node d,
// so that the pipelines share the cards. A message takes `latency` and then, alone, `flow` seconds.
struct Bench {
  std::vector<double> forward;
  int microbatches = 1;
  int pipelines = 1;
  double latency = 1;
  double flow = 4;
  double collective = 0;
  Cluster cluster = {};

  [[nodiscard]] TaskGraph graph() {
    const Schedule& gpipe = *find_schedule("gpipe");
    const int devices = static_cast<int>(forward.size());
    Problem problem;
    problem.shape = {devices, 1, microbatches, 1};
    problem.placement = gpipe.place(devices, 1);
    for (const double seconds : forward) {
      StageCost cost;
      cost.forward = Seconds(seconds);
      cost.backward_input = Seconds(seconds);
      problem.stages.push_back(cost);
    }
    cluster.gpus_per_node = pipelines;
    cluster.nic_latency = Seconds(latency);
    std::vector<std::vector<int>> ranks(pipelines);
    for (int rank = 0; rank < devices * pipelines; ++rank) {
      ranks[rank % pipelines].push_back(rank);
    }
    BuildOptions options;
    options.sync = OptimizerSync::kAllReduce;
    options.collective = Seconds(collective);
    options.message = [this](int, int, int, int, std::uint32_t) {
      return MessageCost{Seconds(latency + flow), Seconds(latency)};
    };
    return build_task_graph(std::make_shared<Program>(gpipe.plan(problem)), problem, ranks,
                            options);
  }
};

TaskId task(const TaskGraph& graph, const std::string& name, std::uint32_t pipeline = 0) {
  for (TaskId i = 0; i < graph.size(); ++i) {
    if (graph.name(i) == name && graph.task_class(i).pipeline == pipeline) return i;
  }
  throw LogicError("no task " + name);
}

std::vector<double> nominal(const TaskGraph& graph) { return jittered(graph, 0, 0); }

void expect_near(double actual, double expected) {
  EXPECT_NEAR(actual, expected, kExact * expected);
}

void expect_same(const Timeline& a, const Timeline& b) {
  EXPECT_EQ(a.start, b.start);
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.shared_links, b.shared_links);
  EXPECT_EQ(a.energy_joules, b.energy_joules);
}

SimGridOptions hosts() { return {.gpu = GpuModel::kHost}; }
// SimGrid itself, also where nothing meets.
SimGridOptions always(GpuModel gpu) { return {.gpu = gpu, .replay_undisturbed = false}; }

class BothGpuModels : public ::testing::TestWithParam<GpuModel> {
 protected:
  std::unique_ptr<Engine> engine_ = make_simgrid_engine(always(GetParam()));
  std::unique_ptr<Engine> usual_ = make_simgrid_engine({.gpu = GetParam()});
};
INSTANTIATE_TEST_SUITE_P(SimGrid, BothGpuModels,
                         ::testing::Values(GpuModel::kTimer, GpuModel::kHost), [](const auto& of) {
                           return of.param == GpuModel::kTimer ? "Timer" : "Host";
                         });

TEST_P(BothGpuModels, EqualReplayWhereNoMessagesMeet) {
  Bench bench{.forward = {10, 12, 9}, .microbatches = 3, .collective = 2};
  const TaskGraph graph = bench.graph();
  const Timeline timeline = engine_->run(graph, bench.cluster, {});
  const Timeline expected = make_replay_engine()->run(graph, bench.cluster, {});
  EXPECT_FALSE(timeline.shared_links);
  EXPECT_TRUE(timeline.energy_joules.empty());
  for (TaskId i = 0; i < graph.size(); ++i) {
    expect_near(timeline.start[i], expected.start[i]);
    expect_near(timeline.end[i], expected.end[i]);
  }
}

// A timeline without shared links is replayed and has SimGrid's own bits; others are SimGrid's.
TEST_P(BothGpuModels, HaveTheBitsOfSimGridWhereTheyReplay) {
  int shared = 0;
  int alone = 0;
  for (const int pipelines : {1, 2, 3}) {
    for (const double flow : {0.0, 4.0, 9.0, 11.0, 25.0}) {
      Bench bench{.forward = {10, 12, 9}, .microbatches = 5, .pipelines = pipelines, .flow = flow};
      const TaskGraph graph = bench.graph();
      std::vector<std::vector<double>> runs = {nominal(graph)};
      for (const double noise : {1e-14, 1e-3, 0.5}) {
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
          runs.push_back(jittered(graph, noise, seed));
        }
      }
      const auto expected = engine_->run_all(graph, bench.cluster, runs);
      const auto found = usual_->run_all(graph, bench.cluster, runs);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < runs.size(); ++i) {
        SCOPED_TRACE(::testing::Message()
                     << pipelines << " pipelines, flow " << flow << ", run " << i);
        expect_same(found[i], expected[i]);
        ++(expected[i].shared_links ? shared : alone);
      }
      expect_same(usual_->run(graph, bench.cluster, {}), expected.front());
    }
  }
  EXPECT_GT(shared, 20);
  EXPECT_GT(alone, 20);
}

TEST(SimGridHost, IsSimGridsWhereMessagesTakeAShareOrSpeedsChange) {
  Bench bench{.forward = {10, 12}, .microbatches = 3};
  const TaskGraph graph = bench.graph();
  SimGridOptions slow = hosts();
  slow.speed_profile = {{0, 15, 0.5}};
  SimGridOptions slow_always = slow;
  slow_always.replay_undisturbed = false;
  const Timeline undisturbed = make_simgrid_engine(hosts())->run(graph, bench.cluster, {});
  const Timeline slowed = make_simgrid_engine(slow)->run(graph, bench.cluster, {});
  expect_same(slowed, make_simgrid_engine(slow_always)->run(graph, bench.cluster, {}));
  EXPECT_NE(slowed.end, undisturbed.end);
  bench.cluster.message_share = 0.25;
  const Timeline shared = make_simgrid_engine(hosts())->run(graph, bench.cluster, {});
  expect_same(shared, make_simgrid_engine(always(GpuModel::kHost))->run(graph, bench.cluster, {}));
  EXPECT_NE(shared.end, undisturbed.end);
}

TEST_P(BothGpuModels, HalveTheBandwidthOfTwoMessagesThroughOneCardAndNotTheirLatency) {
  Bench bench{.forward = {10, 10}, .pipelines = 2};
  const TaskGraph graph = bench.graph();
  const Timeline timeline = engine_->run(graph, bench.cluster, {});
  EXPECT_TRUE(timeline.shared_links);
  for (const std::uint32_t pipeline : {0U, 1U}) {
    expect_near(timeline.end[task(graph, "0F0 -> device 1", pipeline)], 10 + 1 + 8);
  }
}

TEST_P(BothGpuModels, SlowAMessageOnlyWhileAnotherFlows) {
  Bench bench{.forward = {10, 10}, .pipelines = 2};
  const TaskGraph graph = bench.graph();
  std::vector<double> seconds = nominal(graph);
  seconds[task(graph, "0F0", 1)] = 12;
  const Timeline timeline = engine_->run(graph, bench.cluster, seconds);
  EXPECT_TRUE(timeline.shared_links);
  expect_near(timeline.end[task(graph, "0F0 -> device 1", 0)], 17);
  expect_near(timeline.end[task(graph, "0F0 -> device 1", 1)], 19);
}

TEST_P(BothGpuModels, DoNotCallItSharingWhenAMessageFlowsFromTheInstantAnotherEnds) {
  Bench bench{.forward = {10, 10}, .pipelines = 2};
  const TaskGraph graph = bench.graph();
  std::vector<double> seconds = nominal(graph);
  seconds[task(graph, "0F0", 1)] = 14;
  EXPECT_FALSE(engine_->run(graph, bench.cluster, seconds).shared_links);
  seconds[task(graph, "0F0", 1)] = 14 - 1e-9;
  EXPECT_TRUE(engine_->run(graph, bench.cluster, seconds).shared_links);
}

// GPipe on two devices, F of 10 s: at 20 s F1 of device 0 and F0 of device 1 end. Both are copied
// out then, which takes 4 s alone; F0 of device 0 went out before, and comes back at 20 s too.
struct CopyBench {
  int devices_per_link = 2;
  bool back = false;
  double message = 0;  // seconds of a message from device 0 to 1, over a card each

  [[nodiscard]] TaskGraph graph() const {
    const Schedule& gpipe = *find_schedule("gpipe");
    Problem problem;
    problem.shape = {2, 1, 2, 1};
    problem.placement = gpipe.place(2, 1);
    StageCost cost;
    cost.forward = cost.backward_input = Seconds(10);
    cost.copy_out = cost.copy_in = Seconds(4);
    problem.stages = {cost, cost};
    CopyPlan plan;
    plan.devices_per_link = devices_per_link;
    plan.links.resize(devices_per_link == 2 ? 1 : 2);
    plan.gates.resize(2);
    const auto add = [&plan](std::uint32_t device, std::uint32_t unit, std::uint32_t after) {
      LinkCopies& link = plan.links[plan.link_of(device)];
      link.out.push_back({.device = device, .unit = unit});
      link.in.push_back({.device = device, .unit = unit, .after = after});
    };
    add(back ? 0 : 1, 0, 1);
    add(0, 1, 2);
    BuildOptions options;
    options.contending_copies = 1;
    options.message = [this](int, int, int, int, std::uint32_t) {
      return MessageCost{Seconds(message), Seconds(0)};
    };
    const auto program = std::make_shared<Program>(gpipe.plan(problem).with_copies(plan));
    return build_task_graph(program, problem, {{0, 1}}, options);
  }
};

double end_of_copy(const TaskGraph& graph, const Timeline& timeline, TaskKind kind,
                   std::uint32_t device, int unit) {
  for (TaskId i = 0; i < graph.size(); ++i) {
    const TaskClass& of = graph.task_class(i);
    if (of.kind == kind && of.device == device && graph.microbatch(i) == unit) {
      return timeline.end[i];
    }
  }
  throw LogicError("no such copy");
}

TEST_P(BothGpuModels, HalveTheBandwidthOfTwoCopiesOverTheLinkOfOneSwitch) {
  for (const int devices : {1, 2}) {
    const TaskGraph graph = CopyBench{.devices_per_link = devices}.graph();
    const Timeline timeline = engine_->run(graph, {}, {});
    EXPECT_EQ(timeline.shared_links, devices == 2);
    const double seconds = devices == 2 ? 8 : 4;
    expect_near(end_of_copy(graph, timeline, TaskKind::kCopyOut, 0, 1), 20 + seconds);
    expect_near(end_of_copy(graph, timeline, TaskKind::kCopyOut, 1, 0), 20 + seconds);
  }
}

TEST_P(BothGpuModels, GiveEachDirectionItsDuplexShareWhileBothAreBusy) {
  const TaskGraph graph = CopyBench{.back = true}.graph();
  for (const double duplex : {1.0, 0.8, 0.5}) {
    Cluster cluster;
    cluster.host.duplex = duplex;
    const Timeline timeline = engine_->run(graph, cluster, {});
    EXPECT_EQ(timeline.shared_links, duplex < 1);
    expect_near(end_of_copy(graph, timeline, TaskKind::kCopyOut, 0, 1), 20 + 4 / duplex);
    expect_near(end_of_copy(graph, timeline, TaskKind::kCopyIn, 0, 0), 20 + 4 / duplex);
  }
}

// The message of F1 leaves device 0 at 20 s too, and takes as long as a copy alone.
TEST_P(BothGpuModels, LetMessagesAndCopiesMeetAtThePortOfAGpuWhoseCardIsBehindItsSwitch) {
  const TaskGraph graph = CopyBench{.devices_per_link = 1, .message = 4}.graph();
  Cluster cluster;
  cluster.nic_bandwidth = cluster.host.alone = cluster.host.port = BytesPerSecond(1e9);
  for (const CardWay cards : {CardWay::kApart, CardWay::kPort, CardWay::kHostLink}) {
    cluster.host.cards = cards;
    const Timeline timeline = engine_->run(graph, cluster, {});
    const double seconds = cards == CardWay::kApart ? 4 : 8;
    EXPECT_EQ(timeline.shared_links, cards != CardWay::kApart);
    expect_near(end_of_copy(graph, timeline, TaskKind::kCopyOut, 0, 1), 20 + seconds);
    expect_near(timeline.end[task(graph, "0F1 -> device 1")], 20 + seconds);
  }
}

// Messages that are faster than copies make the common way wider, and copies no faster.
TEST_P(BothGpuModels, CopyNoFasterThanAloneWhereCardsAreFaster) {
  const TaskGraph graph = CopyBench{.devices_per_link = 1, .message = 1}.graph();
  Cluster cluster;
  cluster.nic_bandwidth = BytesPerSecond(3e9);
  cluster.host.alone = cluster.host.port = BytesPerSecond(1e9);
  cluster.host.cards = CardWay::kHostLink;
  const Timeline timeline = engine_->run(graph, cluster, {});
  const double copied = end_of_copy(graph, timeline, TaskKind::kCopyOut, 1, 0);
  expect_near(copied, timeline.end[task(graph, "1F0")] + 4);
}

TEST(SimGridHost, LosesNothingToACopy) {
  const TaskGraph graph = CopyBench{}.graph();
  Cluster cluster;
  cluster.message_share = 0.25;
  const Timeline timeline = make_simgrid_engine(hosts())->run(graph, cluster, {});
  expect_near(timeline.end[task(graph, "1F1")], 30);
}

// A copy out of 4 s runs beside 1F1 alone, from 20.
TEST(SimGridHost, LosesTheShareOfACopyThatRunsBesideIt) {
  const TaskGraph graph = CopyBench{.devices_per_link = 1}.graph();
  Cluster cluster;
  cluster.copy_share = 0.25;
  const Timeline timeline = make_simgrid_engine(hosts())->run(graph, cluster, {});
  expect_near(timeline.end[task(graph, "1F0")], 20);
  expect_near(timeline.end[task(graph, "1F1")], 30 + 1);
  const Timeline undisturbed = make_simgrid_engine()->run(graph, cluster, {});
  expect_near(undisturbed.end[task(graph, "1F1")], 30);
}

TEST_P(BothGpuModels, CompleteMessagesThatCarryNothingAndPassesThatTakeNoTime) {
  Bench bench{.forward = {0, 10, 0}, .microbatches = 2, .flow = 0};
  const TaskGraph graph = bench.graph();
  const Timeline timeline = engine_->run(graph, bench.cluster, {});
  EXPECT_FALSE(timeline.shared_links);
  EXPECT_EQ(timeline.end[task(graph, "0F0")], 0);
  EXPECT_EQ(timeline.end[task(graph, "0F0 -> device 1")], 1);
  EXPECT_EQ(*std::ranges::max_element(timeline.end), 1 + 20 + 1 + 1 + 20 + 1);
}

TEST_P(BothGpuModels, FinishAGraphInWhichNothingTakesTime) {
  Bench bench{.forward = {0, 0}, .latency = 0, .flow = 0};
  const TaskGraph graph = bench.graph();
  const Timeline timeline = engine_->run(graph, bench.cluster, {});
  EXPECT_EQ(timeline.end, LargeVector<double>(graph.size(), 0.0));
}

TEST_P(BothGpuModels, KeepFullPrecisionFromMicrosecondsToDays) {
  for (const double unit : {1e-6, 1e5}) {
    Bench bench{.forward = {3 * unit, unit / 3},
                .microbatches = 40,
                .latency = unit / 7000,
                .flow = unit / 1300};
    const TaskGraph graph = bench.graph();
    const Timeline timeline = engine_->run(graph, bench.cluster, {});
    const Timeline expected = make_replay_engine()->run(graph, bench.cluster, {});
    for (TaskId i = 0; i < graph.size(); ++i) expect_near(timeline.end[i], expected.end[i]);
  }
}

TEST_P(BothGpuModels, GiveTheSameBytesForTheSameInput) {
  Bench bench{.forward = {10, 11, 12, 13}, .microbatches = 16, .pipelines = 8};
  const TaskGraph graph = bench.graph();
  const std::vector<double> seconds = jittered(graph, 0.01, 7);
  const Timeline first = engine_->run(graph, bench.cluster, seconds);
  EXPECT_TRUE(first.shared_links);
  expect_same(first, engine_->run(graph, bench.cluster, seconds));
  expect_same(first, make_simgrid_engine({.gpu = GetParam()})->run(graph, bench.cluster, seconds));
}

TEST_P(BothGpuModels, GiveAnEnsembleTheTimelinesOfItsRunsInOrderWhateverTheProcesses) {
  Bench bench{.forward = {10, 11}, .microbatches = 8, .pipelines = 4};
  const TaskGraph graph = bench.graph();
  std::vector<std::vector<double>> seconds = {{}};
  for (std::uint64_t seed = 1; seed < 6; ++seed) seconds.push_back(jittered(graph, 0.01, seed));
  for (const int processes : {1, 3, 16}) {
    const auto engine = make_simgrid_engine({.gpu = GetParam(), .processes = processes});
    const std::vector<Timeline> all = engine->run_all(graph, bench.cluster, seconds);
    ASSERT_EQ(all.size(), seconds.size());
    for (size_t i = 0; i < all.size(); ++i) {
      expect_same(all[i], engine_->run(graph, bench.cluster, seconds[i]));
    }
  }
  EXPECT_TRUE(engine_->run_all(graph, bench.cluster, {}).empty());
}

TEST(SimGridHost, LosesTheShareOfAMessageThatFlowsInOneDirection) {
  Bench bench{.forward = {10, 12}, .microbatches = 2};
  bench.cluster.message_share = 0.25;
  const TaskGraph graph = bench.graph();
  const Timeline timeline = make_simgrid_engine(hosts())->run(graph, bench.cluster, {});
  EXPECT_FALSE(timeline.shared_links);
  // 0F0 goes out from 11 to 15 and 0F1 comes in from 22 to 26: one second lost to each.
  expect_near(timeline.end[task(graph, "0F1")], 20 + 1);
  expect_near(timeline.end[task(graph, "1F0")], 15 + 12 + 1);
  const Timeline undisturbed = make_simgrid_engine()->run(graph, bench.cluster, {});
  EXPECT_EQ(undisturbed.end[task(graph, "0F1")], 20);
}

TEST(SimGridHost, LosesTheShareOnceForEachDirection) {
  Bench bench{.forward = {10, 15, 10}, .microbatches = 3, .latency = 0};
  bench.cluster.message_share = 0.25;
  const TaskGraph graph = bench.graph();
  const Timeline timeline = make_simgrid_engine(hosts())->run(graph, bench.cluster, {});
  // 1F0 goes out from 30 to 34, 0F2 comes in from 32 to 36, beside 1F1 from 30.
  expect_near(timeline.start[task(graph, "1F1")], 30);
  expect_near(timeline.end[task(graph, "1F1")], 30 + 15 + 1 + 1);
}

TEST(SimGridHost, StopsComputingWhileAMessageTakesAllOfIt) {
  Bench bench{.forward = {10, 12}, .microbatches = 2};
  bench.cluster.message_share = 1;
  const TaskGraph graph = bench.graph();
  const Timeline timeline = make_simgrid_engine(hosts())->run(graph, bench.cluster, {});
  EXPECT_NEAR(timeline.end[task(graph, "0F1")], 24, 1e-4);
}

TEST(SimGridHost, FollowsItsSpeedProfile) {
  Bench bench{.forward = {10, 10}};
  const TaskGraph graph = bench.graph();
  SimGridOptions options = hosts();
  options.speed_profile = {{0, 4, 0.5}, {0, 10, 2}, {1, 0, 0.5}, {99, 1, 0}};
  const Timeline timeline = make_simgrid_engine(options)->run(graph, bench.cluster, {});
  // Half of its speed from 4 to 10 leaves 3 seconds of work, done at twice the speed.
  expect_near(timeline.end[task(graph, "0F0")], 10 + 1.5);
  expect_near(timeline.end[task(graph, "1F0")], 11.5 + 5 + 20);
}

TEST(SimGridHost, LosesAShareOfTheSpeedThatItHasAtTheTime) {
  Bench bench{.forward = {10, 12}, .microbatches = 2};
  bench.cluster.message_share = 0.25;
  const TaskGraph graph = bench.graph();
  SimGridOptions options = hosts();
  options.speed_profile = {{0, 12, 0.5}};
  const Timeline timeline = make_simgrid_engine(options)->run(graph, bench.cluster, {});
  // 0F1 runs at 1 until 11, at 0.75 until 12, at 0.375 until 15 and at 0.5 from there.
  expect_near(timeline.end[task(graph, "0F1")], 15 + (10 - 1 - 0.75 - 3 * 0.375) / 0.5);
}

TEST(SimGridHost, GoesOnWhereItStoodWhenItStoodStillForAWhile) {
  Bench bench{.forward = {10, 10}, .microbatches = 2};
  const TaskGraph graph = bench.graph();
  SimGridOptions options = hosts();
  // Device 0 stops twice in its first pass; device 1 stands when its first pass starts at 18.
  options.speed_profile = {{0, 4, 0}, {0, 6, 1},  {0, 7, 0},  {0, 8, 1},
                           {1, 0, 0}, {1, 20, 2}, {1, 25, 0}, {1, 30, 1}};
  const Timeline timeline = make_simgrid_engine(options)->run(graph, bench.cluster, {});
  expect_near(timeline.end[task(graph, "0F0")], 13);
  expect_near(timeline.start[task(graph, "1F0")], 18);
  expect_near(timeline.end[task(graph, "1F0")], 25);
  expect_near(timeline.end[task(graph, "1F1")], 40);
}

TEST(SimGridHost, NamesWhatNeverEndsOnAGpuThatStandsStill) {
  Bench bench{.forward = {10, 10}};
  const TaskGraph graph = bench.graph();
  SimGridOptions options = hosts();
  options.speed_profile = {{0, 4, 0}};
  try {
    (void)make_simgrid_engine(options)->run(graph, bench.cluster, {});
    FAIL() << "no error";
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("first 0F0, 0F0 -> device 1"), std::string::npos)
        << error.what();
  }
}

TEST(SimGridHost, CountsTheEnergyOfItsIdleAndBusyTimeToTheEndOfTheRun) {
  Bench bench{.forward = {10, 20}, .collective = 5};
  bench.cluster.idle_power = Watts(100);
  bench.cluster.busy_power = Watts(700);
  const TaskGraph graph = bench.graph();
  const Timeline timeline = make_simgrid_engine(hosts())->run(graph, bench.cluster, {});
  const double makespan = 2 * (10 + 5 + 20) + 5;
  ASSERT_EQ(timeline.energy_joules.size(), 2U);
  EXPECT_NEAR(timeline.energy_joules[0], 100 * makespan + 600 * 20, 1e-6);
  EXPECT_NEAR(timeline.energy_joules[1], 100 * makespan + 600 * 40, 1e-6);
  bench.cluster.busy_power.reset();
  EXPECT_TRUE(make_simgrid_engine(hosts())->run(graph, bench.cluster, {}).energy_joules.empty());
}

TEST(SimGridEngine, RefusesDurationsThatAreNotOnePerTask) {
  Bench bench{.forward = {10, 10}};
  const TaskGraph graph = bench.graph();
  const auto engine = make_simgrid_engine();
  EXPECT_THROW((void)engine->run(graph, bench.cluster, std::vector<double>{1.0}), LogicError);
  EXPECT_NO_THROW((void)engine->run(graph, bench.cluster, {}));
}

TEST(SimGridEngine, NamesTheTaskWhoseDurationIsNotATime) {
  Bench bench{.forward = {10, 10}};
  const TaskGraph graph = bench.graph();
  for (const double wrong : {-1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    std::vector<double> seconds = nominal(graph);
    seconds[task(graph, "1F0")] = wrong;
    try {
      (void)make_simgrid_engine()->run(graph, bench.cluster, seconds);
      FAIL() << "no error for " << wrong;
    } catch (const LogicError& error) {
      EXPECT_NE(std::string(error.what()).find("1F0"), std::string::npos) << error.what();
    }
  }
}

TEST(SimGridEngine, RefusesOptionsThatHaveNoMeaning) {
  EXPECT_THROW((void)make_simgrid_engine({.speed_profile = {{0, 1, 0.5}}}), LogicError);
  EXPECT_THROW((void)make_simgrid_engine({.processes = 0}), LogicError);
  SimGridOptions backwards = hosts();
  backwards.speed_profile = {{0, 1, -0.5}};
  EXPECT_THROW((void)make_simgrid_engine(backwards), LogicError);
}

// Processes that this one has started and not yet collected.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream list(thread.path() / "children");
    for (pid_t child = 0; list >> child;) found.push_back(child);
  }
  return found;
}

TEST(SimGridEngine, LeavesNoProcessBehind) {
  Bench bench{.forward = {10, 10}};
  const TaskGraph graph = bench.graph();
  {
    const auto engine = make_simgrid_engine(always(GpuModel::kTimer));
    EXPECT_TRUE(children().empty()) << "nothing is started before the first run";
    (void)engine->run(graph, bench.cluster, {});
    EXPECT_EQ(children().size(), 1U) << "one server waits for the next run";
  }
  EXPECT_TRUE(children().empty());
  (void)make_simgrid_engine()->run(graph, bench.cluster, {});
  EXPECT_TRUE(children().empty());
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(SimGridEngine, StartsAnewWhenItsServerWasKilled) {
  Bench bench{.forward = {10, 10}};
  const TaskGraph graph = bench.graph();
  const auto engine = make_simgrid_engine(always(GpuModel::kTimer));
  const Timeline first = engine->run(graph, bench.cluster, {});
  for (const pid_t server : children()) {
    kill(server, SIGKILL);
    siginfo_t ended;
    waitid(P_PID, static_cast<id_t>(server), &ended, WEXITED | WNOWAIT);
  }
  expect_same(engine->run(graph, bench.cluster, {}), first);
}

// A run of seconds, of which none is waited for.
TEST(SimGridEngine, EndsARunThatNobodyWaitsFor) {
  Bench bench{.forward = {10, 10, 10, 10}, .microbatches = 20000};
  const TaskGraph graph = bench.graph();
  const auto engine = make_simgrid_engine(always(GpuModel::kTimer));
  const std::atomic<bool> asked = true;
  {
    const StopOn stopping(asked);
    EXPECT_THROW((void)engine->run(graph, bench.cluster, {}), Stopped);
    EXPECT_TRUE(children().empty());
  }
  Bench small{.forward = {10, 10}};
  expect_same(engine->run(small.graph(), small.cluster, {}),
              make_simgrid_engine(always(GpuModel::kTimer))->run(small.graph(), small.cluster, {}));
}

TEST(SimGridEngine, WorksInAProcessForkedFromItsOwn) {
  Bench bench{.forward = {10, 10}};
  const TaskGraph graph = bench.graph();
  const auto engine = make_simgrid_engine(always(GpuModel::kTimer));
  const Timeline first = engine->run(graph, bench.cluster, {});
  const pid_t child = fork();
  if (child == 0) {
    bool same = false;
    try {
      same = engine->run(graph, bench.cluster, {}).end == first.end;
    } catch (const std::exception&) {
    }
    _exit(same ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  expect_same(engine->run(graph, bench.cluster, {}), first);
}

}  // namespace
}  // namespace pipesim::simgrid_test
