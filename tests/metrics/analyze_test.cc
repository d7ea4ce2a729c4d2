#include "sim/metrics/analyze.h"

#include <gtest/gtest.h>
#include <numeric>

#include "sim/engine/engine.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/with_recompute.h"
#include "sim/graph/build.h"
#include "sim/graph/critical_path.h"
#include "sim/metrics/memory_curve.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::analyze_test {
namespace {

struct Case {
  Problem problem;
  std::shared_ptr<const Program> program;

  Case(const std::string& name, int devices, int microbatches, const StageCost& cost) {
    const Schedule* schedule = find_schedule(name);
    problem.shape = {devices, schedule->default_chunks, microbatches, 1};
    problem.placement = schedule->place(devices, schedule->default_chunks);
    problem.stages.assign(problem.placement.virtual_stages(), cost);
    testing::set_transfers(problem, cost.transfer.value());
    program = std::make_shared<const Program>(schedule->plan(problem));
  }

  [[nodiscard]] Report report(const BuildOptions& options = {}) const {
    const TaskGraph graph = build_task_graph(program, problem, options);
    return analyze(graph, make_replay_engine()->run(graph, {}, {}));
  }
};

StageCost cost(double f, double b, double w, double transfer = 0) {
  return {.forward = Seconds(f),
          .backward_input = Seconds(b),
          .backward_weight = Seconds(w),
          .overlapped = Seconds(f + b + w),
          .transfer = Seconds(transfer),
          .activation = Bytes(3),
          .weight_stash = Bytes(1)};
}

double idle_sum(const DeviceReport& device) {
  return std::accumulate(device.idle_by_cause.begin(), device.idle_by_cause.end(), Seconds())
      .value();
}

double idle(const DeviceReport& device, IdleCause cause) {
  return device.idle_by_cause[cause].value();
}

// GPipe of one microbatch on two devices, the second with F 3, BW 6:
//   device 0: F . . . . . . . . . BW BW      span 12, work 3
//   device 1:   F F F BW x 6                 work 9
TEST(Analyze, HoldsTheSpanAgainstTheBusiestDeviceToo) {
  Case unequal("gpipe", 2, 1, cost(1, 1, 1));
  unequal.problem.stages[1] = cost(3, 3, 3);
  const Report report = unequal.report();
  EXPECT_DOUBLE_EQ(report.cost.value(), 12);
  EXPECT_DOUBLE_EQ(report.bubble_rate, 9.0 / 12);
  EXPECT_DOUBLE_EQ(report.bubble_rate_busiest, 3.0 / 12);
  EXPECT_TRUE(report.unequal_work());
}

// 1F1B on two devices, two microbatches, F 1, BW 2, messages free:
//   device 0: F0 F1 . BW0 BW1 .   (BW0 waits for device 1 until 3; ends 7)
//   device 1: . F0 BW0 F1 BW1 .
TEST(Analyze, ComputesEveryRateOfAPipelineDoneByHand) {
  const Report report = Case("1f1b", 2, 2, cost(1, 1, 1)).report();
  EXPECT_DOUBLE_EQ(report.iteration.value(), 9);
  EXPECT_DOUBLE_EQ(report.makespan.value(), 9);
  EXPECT_DOUBLE_EQ(report.cost.value(), 9);
  EXPECT_DOUBLE_EQ(report.bubble_rate, 3.0 / 9);
  EXPECT_DOUBLE_EQ(report.bubble_rate_makespan, 3.0 / 9);
  EXPECT_DOUBLE_EQ(report.bubble_over_ideal, 6.0 / 12);
  const DeviceReport& first = report.devices[0];
  EXPECT_DOUBLE_EQ(idle(first, IdleCause::kWarmUp), 2);    // before BW0
  EXPECT_DOUBLE_EQ(idle(first, IdleCause::kCoolDown), 1);  // before BW1
  const DeviceReport& second = report.devices[1];
  EXPECT_DOUBLE_EQ(second.span.value(), 6);
  EXPECT_DOUBLE_EQ(idle(second, IdleCause::kWarmUp), 1);
  EXPECT_DOUBLE_EQ(idle(second, IdleCause::kCoolDown), 2);
}

TEST(Analyze, ChargesEveryGapOnceOnEverySchedule) {
  for (const Schedule* schedule : schedules()) {
    for (const int variant : {0, 1, 2, 3}) {
      const bool blocking = variant > 1;
      const Case of(schedule->name, 4, 12, cost(10, 11, 7, 1.5));
      BuildOptions options;
      options.sync = variant % 2 == 0 ? OptimizerSync::kNone : OptimizerSync::kAllReduce;
      options.collective = Seconds(2);
      options.optimizer = Seconds(3);
      options.slowdown_of_rank = {1, 1.5, 1, 1};
      if (blocking) options.blocking = schedule->calls;
      const Report report = of.report(options);
      for (const DeviceReport& device : report.devices) {
        EXPECT_NEAR(idle_sum(device), device.idle.value(), 1e-12 * report.iteration.value())
            << schedule->name;
        EXPECT_NEAR((device.busy + device.idle).value(), report.iteration.value(), 1e-9);
      }
    }
  }
}

// Where iterations overlap, one in their midst waits for what is left of the one before.
TEST(Analyze, TellsAMakespanFromRestFromOneInSteadyState) {
  const Case of("1f1b", 4, 8, cost(10, 11, 7, 1.5));
  const Report alone = of.report();
  EXPECT_EQ(alone.makespan_from_rest, alone.makespan);
  BuildOptions options;
  options.iterations = 8;
  options.sync = OptimizerSync::kPostValidation;
  options.optimizer = Seconds(3);
  const Report report = of.report(options);
  EXPECT_DOUBLE_EQ(report.makespan_from_rest.value(), alone.makespan.value());
  EXPECT_GE(report.makespan.value(), report.makespan_from_rest.value() * (1 - 1e-12));
  for (const DeviceReport& device : report.devices) {
    EXPECT_DOUBLE_EQ(device.closing().value(), 3);
    EXPECT_DOUBLE_EQ(device.passes.value(), 8 * (10 + 11 + 7));
  }
}

TEST(Analyze, SplitsAWaitIntoTheMessageAndTheComputeBehindIt) {
  // In the steady phase device 0 waits for each gradient: the round trip costs two messages.
  const Report report = Case("1f1b", 2, 8, cost(10, 10, 10, 1)).report();
  EXPECT_GT(idle(report.devices[0], IdleCause::kTransfer), 0);
  EXPECT_DOUBLE_EQ(idle(report.devices[0], IdleCause::kImbalance), 0);
}

// The round trip of a gradient and the next activation is messages, however far away it was sent.
TEST(Analyze, FollowsAWaitThroughTheDevicesThatWaitedThemselves) {
  Case of("1f1b", 2, 4, cost(1, 1, 1, 3));
  const double before = idle(of.report().devices[1], IdleCause::kTransfer);
  of.problem.stages[0].transfer = Seconds(6);
  const Report report = of.report();
  EXPECT_GT(idle(report.devices[1], IdleCause::kTransfer), before);
  EXPECT_NEAR(idle_sum(report.devices[1]), report.devices[1].idle.value(), 1e-12);
}

BuildOptions in_megatrons_calls() {
  BuildOptions options;
  options.blocking = CallGroups::kMegatron;
  return options;
}

// A device that must hand on what nobody takes yet is held by the transfer, not by an input.
TEST(Analyze, ChargesWhatADeviceIsHeldBySendingToTheTransfer) {
  Case of("1f1b", 3, 12, cost(10, 10, 10, 1));
  const auto transfer = [](const Report& report) {
    double sum = 0;
    for (const DeviceReport& device : report.devices) sum += idle(device, IdleCause::kTransfer);
    return sum;
  };
  const Report overlapped = of.report();
  const Report blocking = of.report(in_megatrons_calls());
  EXPECT_GT(transfer(blocking), transfer(overlapped));
  EXPECT_GT(blocking.iteration, overlapped.iteration);
  for (const DeviceReport& device : blocking.devices) {
    EXPECT_NEAR(idle_sum(device), device.idle.value(), 1e-9);
  }
}

TEST(Analyze, CallsWaitingForASlowerStageImbalance) {
  Case of("1f1b", 2, 8, cost(10, 10, 10));
  of.problem.stages[1] = cost(20, 20, 20);
  const Report report = of.report();
  EXPECT_GT(idle(report.devices[0], IdleCause::kImbalance), 0);
  EXPECT_DOUBLE_EQ(idle(report.devices[0], IdleCause::kOrder), 0);
  EXPECT_DOUBLE_EQ(idle(report.devices[1], IdleCause::kImbalance), 0);
}

TEST(Analyze, ChargesTheReductionAsCollectiveAndTheOptimizerAsBusy) {
  const Case of("1f1b", 2, 2, cost(1, 1, 1));
  BuildOptions options;
  options.sync = OptimizerSync::kAllReduce;
  options.collective = Seconds(0.5);
  options.optimizer = Seconds(2);
  const Report report = of.report(options);
  EXPECT_DOUBLE_EQ(report.iteration.value(), 9 + 0.5 + 2);
  EXPECT_DOUBLE_EQ(report.makespan.value(), 9);
  for (const DeviceReport& device : report.devices) {
    EXPECT_DOUBLE_EQ(idle(device, IdleCause::kCollective), 0.5);
    EXPECT_DOUBLE_EQ(device.busy.value(), 8);
  }
}

// One iteration stands for all when each starts afresh: unrolling changes nothing.
TEST(Analyze, FindsThePeriodOfOneIterationInManyUnderAllReduce) {
  const Case of("zb-h1", 4, 8, cost(10, 11, 7, 1));
  BuildOptions options;
  options.sync = OptimizerSync::kAllReduce;
  options.collective = Seconds(2);
  options.optimizer = Seconds(3);
  const Report one = of.report(options);
  options.iterations = 5;
  const Report many = of.report(options);
  EXPECT_NEAR(many.iteration.value(), one.iteration.value(), 1e-9);
  EXPECT_NEAR(many.bubble_rate, one.bubble_rate, 1e-12);
}

// Zero bubble needs no barrier: the ramps of neighbouring iterations then overlap.
TEST(Analyze, OverlapsRampsUnderPostValidation) {
  const Case of("zb-h2", 4, 8, cost(1, 1, 1));
  BuildOptions options;
  options.sync = OptimizerSync::kPostValidation;
  options.iterations = 8;
  const Report report = of.report(options);
  EXPECT_DOUBLE_EQ(report.iteration.value(), 24);  // m (F+B+W): no idle second
  EXPECT_DOUBLE_EQ(report.makespan.value(), 27);   // the ramp is still there
  for (const DeviceReport& device : report.devices) EXPECT_DOUBLE_EQ(device.idle.value(), 0);
}

TEST(Analyze, FindsThePeakItsTimeAndItsPass) {
  const Report report = Case("1f1b", 4, 8, cost(10, 10, 10)).report();
  for (int d = 0; d < 4; ++d) {
    EXPECT_DOUBLE_EQ(report.devices[d].peak_activation.value(), 3 * (4 - d));
  }
  EXPECT_EQ(report.devices[0].peak_pass, "0F3");
  EXPECT_DOUBLE_EQ(report.devices[0].peak_time.value(), 30);
  EXPECT_DOUBLE_EQ(report.peak_activation.value(), 12);
}

TEST(Analyze, AgreesWithEvaluationOnEverySchedule) {
  for (const Schedule* schedule : schedules()) {
    const Case of(schedule->name, 4, 12, cost(10, 12, 8, 1));
    const Evaluation expected = evaluate(*of.program, of.problem);
    const Report report = of.report();
    EXPECT_EQ(report.makespan, expected.makespan) << schedule->name;
    EXPECT_EQ(report.cost, expected.cost) << schedule->name;
    for (size_t d = 0; d < 4; ++d) {
      EXPECT_EQ(report.devices[d].peak_activation, expected.devices[d].peak_activation)
          << schedule->name;
    }
  }
}

// 1F1B on two devices, two microbatches, F, B, W 1, R 2 on device 0 only, messages free:
//   device 0: F0 F1 R0 BW0 R1 BW1     (R0 2-4, BW0 4-6, R1 6-8, BW1 8-10)
//   device 1: . F0 BW0 F1 BW1
TEST(Analyze, CountsRecomputeAsBusyAndReportsItApart) {
  Case of("1f1b", 2, 2, cost(1, 1, 1));
  of.problem.stages[0].recompute = Seconds(2);
  of.program = std::make_shared<const Program>(Program(
      of.problem.shape, of.problem.placement,
      {{make_pass(PassKind::kF, 0), make_pass(PassKind::kF, 1), make_pass(PassKind::kR, 0),
        make_pass(PassKind::kBW, 0), make_pass(PassKind::kR, 1), make_pass(PassKind::kBW, 1)},
       {make_pass(PassKind::kF, 0), make_pass(PassKind::kBW, 0), make_pass(PassKind::kF, 1),
        make_pass(PassKind::kBW, 1)}}));
  const Report report = of.report();
  EXPECT_DOUBLE_EQ(report.makespan.value(), 10);
  EXPECT_DOUBLE_EQ(report.devices[0].busy.value(), 10);
  EXPECT_DOUBLE_EQ(report.devices[0].recompute.value(), 4);
  EXPECT_DOUBLE_EQ(report.devices[0].idle.value(), 0);
  EXPECT_DOUBLE_EQ(report.devices[1].recompute.value(), 0);
}

// Device 0 waits for its first gradient from 4 to 10. With R of half a second everywhere the last
// device's R delays that by as much as device 0's own fills; the rest of the wait is still warm-up.
TEST(Analyze, TakesARecomputedForwardForNoBackward) {
  Case of("1f1b", 4, 4, cost(1, 1, 1));
  EXPECT_DOUBLE_EQ(idle(of.report().devices[0], IdleCause::kWarmUp), 6);
  for (StageCost& stage : of.problem.stages) stage.recompute = Seconds(0.5);
  of.program = std::make_shared<const Program>(with_recompute(*of.program, 1));
  const Report report = of.report();
  EXPECT_DOUBLE_EQ(idle(report.devices[0], IdleCause::kWarmUp), 6);
  EXPECT_DOUBLE_EQ(report.devices[0].busy.value(), 14);
}

TEST(Analyze, AgreesWithEvaluationOnEveryRecomputedSchedule) {
  for (const Schedule* schedule : schedules()) {
    if (schedule->offloads()) continue;  // it places R itself, before its copies
    Case of(schedule->name, 4, 12, cost(10, 12, 8, 1));
    for (StageCost& stage : of.problem.stages) {
      stage.checkpoint = Bytes(0.5);
      stage.overlapped = Seconds(30);
    }
    of.program = std::make_shared<const Program>(with_recompute(*of.program, 1));
    const Evaluation expected = evaluate(*of.program, of.problem);
    const Report report = of.report();
    EXPECT_EQ(report.makespan, expected.makespan) << schedule->name;
    EXPECT_EQ(report.cost, expected.cost) << schedule->name;
    for (size_t d = 0; d < 4; ++d) {
      const DeviceReport& device = report.devices[d];
      EXPECT_EQ(device.peak_activation, expected.devices[d].peak_activation) << schedule->name;
      EXPECT_NEAR(idle_sum(device), device.idle.value(), 1e-9) << schedule->name;
      EXPECT_GT(device.recompute, Seconds(0)) << schedule->name;
    }
  }
}

TEST(Analyze, KnowsWhenAnOverlappingPipelineHasSettled) {
  const Case of("1f1b", 4, 8, cost(10, 12, 8, 1));
  BuildOptions options;
  options.sync = OptimizerSync::kPostValidation;
  options.iterations = 8;
  const TaskGraph graph = build_task_graph(of.program, of.problem, options);
  EXPECT_TRUE(is_steady(graph, make_replay_engine()->run(graph, {}, {}), 1e-9));
}

TEST(Memory, EndsWhereItBeganOnEveryDevice) {
  const Case of("zb-h2", 4, 8, cost(10, 12, 8, 1));
  const TaskGraph graph = build_task_graph(of.program, of.problem);
  const auto curves = memory_curves(graph, make_replay_engine()->run(graph, {}, {}), 0);
  ASSERT_EQ(curves.size(), 4U);
  for (const auto& curve : curves) {
    EXPECT_DOUBLE_EQ(curve.back().bytes, 0);
    for (size_t i = 1; i < curve.size(); ++i) EXPECT_LE(curve[i - 1].seconds, curve[i].seconds);
    for (const MemoryLevel& level : curve) EXPECT_GE(level.bytes, 0);
  }
}

TEST(CriticalPath, LeadsWithoutAGapToTheLastEnd) {
  const Case of("zb-h1", 4, 8, cost(10, 12, 8, 1));
  const TaskGraph graph = build_task_graph(of.program, of.problem);
  const Timeline timeline = make_replay_engine()->run(graph, {}, {});
  const auto path = critical_path(graph, timeline);
  EXPECT_DOUBLE_EQ(timeline.start[path.front()], 0);
  for (size_t i = 1; i < path.size(); ++i) {
    EXPECT_DOUBLE_EQ(timeline.end[path[i - 1]], timeline.start[path[i]]);
  }
  EXPECT_DOUBLE_EQ(timeline.end[path.back()], *std::ranges::max_element(timeline.end));
}

TEST(Ensemble, AveragesTimesAndKeepsTheirSpread) {
  Report first = Case("1f1b", 2, 2, cost(1, 1, 1)).report();
  Report second = first;
  second.iteration = Seconds(11);
  const Report mean = ensemble_of(std::vector{first, second}, 5, 0.1);
  EXPECT_DOUBLE_EQ(mean.iteration.value(), 10);
  EXPECT_DOUBLE_EQ(mean.ensemble->mean.value(), 10);
  EXPECT_DOUBLE_EQ(mean.ensemble->stddev.value(), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(mean.ensemble->p05.value(), 9.1);
  EXPECT_DOUBLE_EQ(mean.ensemble->p50.value(), 10);
  EXPECT_DOUBLE_EQ(mean.ensemble->p95.value(), 10.9);
}

}  // namespace
}  // namespace pipesim::analyze_test
