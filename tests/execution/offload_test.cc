#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "sim/core/error.h"
#include "sim/engine/engine.h"
#include "sim/execution/evaluate.h"
#include "sim/execution/with_offload.h"
#include "sim/graph/build.h"
#include "sim/metrics/analyze.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"
#include "tests/sanitized.h"

namespace pipesim::offload_test {
namespace {

// Equal times, and copies that take this share of a stage's F, B and W.
Problem with_copies(const Shape& shape, const testing::Times& times, double share) {
  Problem problem = testing::make_problem(shape, times);
  for (StageCost& cost : problem.stages) {
    cost.copy_out = cost.copy_in =
        Seconds(share * (times.forward + times.backward_input + times.backward_weight));
  }
  problem.devices_per_host_link = 2;
  problem.copy_alone_factor = 0.7;
  return problem;
}

Evaluation planned(const char* schedule, const Problem& problem) {
  return evaluate(find_schedule(schedule)->plan(problem), problem);
}

// A program of any placement, with recomputation and overlapped blocks, and copies of any length.
testing::RandomCase case_of(testing::Random& random) {
  testing::RandomCase drawn = testing::random_case(random, random.coin());
  for (StageCost& cost : drawn.problem.stages) {
    cost.activation = std::max(cost.activation, cost.weight_stash);
    cost.copy_out = random.real(0.05, 2) * cost.forward;
    cost.copy_in = random.real(0.05, 2) * cost.forward;
  }
  drawn.problem.devices_per_host_link = random.integer(1, 3);
  drawn.problem.copy_alone_factor = random.real(0.5, 1);
  drawn.problem.prefetch = random.real(0, 2);
  return drawn;
}

TEST(Offload, NeverCostsTimeNorMemory) {
  testing::Random random(5);
  size_t copies = 0;
  for (int round = 0; round < 300; ++round) {
    const auto [problem, program] = case_of(random);
    const int chunks = random.integer(1, problem.shape.chunks);
    SCOPED_TRACE("round " + std::to_string(round));
    const Program offloaded = with_offload(program, problem, chunks);
    const Evaluation before = evaluate(program, problem);
    const Evaluation after = evaluate(offloaded, problem);
    EXPECT_LE(after.makespan.value(), before.makespan.value() * (1 + 1e-9));
    for (size_t d = 0; d < after.devices.size(); ++d) {
      EXPECT_LE(after.devices[d].peak_activation.value(),
                before.devices[d].peak_activation.value() * (1 + 1e-9))
          << "device " << d;
    }
    for (const LinkCopies& link : offloaded.copies()->links) copies += link.out.size();
  }
  EXPECT_GT(copies, 1000U) << "there must be something to see";
}

// A link that cannot carry all carries what lowers the peak most: no scope within keeps less.
TEST(Offload, OfAllKeepsNoMoreThanOfFewer) {
  testing::Random random(11);
  const std::vector<const char*> names{"1f1b", "zb-h1", "zb-h2", "zb-v", "v-half", "gis", "gis-h"};
  int compared = 0;
  for (int round = 0; round < testing::rounds(200); ++round) {
    const Schedule& schedule = *find_schedule(names[random.integer(0, 6)]);
    const int p = random.integer(2, 8);
    const int v = std::clamp(random.integer(1, 4), schedule.min_chunks, schedule.max_chunks);
    Problem problem = testing::random_problem(random, {p, v, random.integer(1, 4 * p), 1},
                                              schedule.place(p, v), random.coin());
    const double share = random.real(0.05, 3);
    for (StageCost& cost : problem.stages) {
      cost.activation = std::max(cost.activation, cost.weight_stash);
      cost.copy_out = share * (cost.forward + cost.backward_input + cost.backward_weight);
      cost.copy_in = random.real(0.5, 2) * cost.copy_out;
    }
    problem.devices_per_host_link = random.integer(1, 2);
    problem.copy_alone_factor = random.real(0.5, 1);
    const Program kept = schedule.plan(problem);
    SCOPED_TRACE("round " + std::to_string(round) + " " + schedule.name);
    const auto peak = [&](const OffloadScope& scope) {
      return evaluate(with_offload(kept, problem, scope), problem).peak_activation().value();
    };
    const double all = peak({.chunks = v});
    std::vector<bool> even(problem.shape.microbatches, false);
    for (size_t i = 0; i < even.size(); i += 2) even[i] = true;
    for (int chunks = 1; chunks <= v; ++chunks) {
      EXPECT_LE(all, peak({.chunks = chunks}) * (1 + 1e-9)) << chunks;
      EXPECT_LE(all, peak({.chunks = chunks, .microbatches = even}) * (1 + 1e-9)) << chunks;
      ++compared;
    }
  }
  EXPECT_GE(compared, testing::rounds(200));
}

// gis-h on 4 devices with 9 microbatches, copies of two passes' length each way: the most copies
// that the link can carry would wait for it so long that 14 activations stay.
TEST(Offload, TakesFewerCopiesWhereTheyWaitLess) {
  const Problem problem = with_copies({4, 2, 9, 1}, {1, 1, 1, 0}, 2.0 / 3);
  const Program kept = find_schedule("gis-h")->plan(problem);
  Problem alone = problem;
  alone.devices_per_host_link = 1;
  alone.copy_alone_factor = 1;
  EXPECT_LE(evaluate(with_offload(kept, alone, 2), alone).peak_activation().value(), 6);
}

// The same arithmetic in evaluation and replay, and what a link and a copy may do.
TEST(Offload, CopiesKeepTheirLinkAndTheirOrder) {
  testing::Random random(6);
  for (int round = 0; round < 100; ++round) {
    const auto [problem, kept] = case_of(random);
    SCOPED_TRACE("round " + std::to_string(round));
    const auto program =
        std::make_shared<const Program>(with_offload(kept, problem, problem.shape.chunks));
    const TaskGraph graph = build_task_graph(program, problem);
    const Timeline timeline = make_replay_engine()->run(graph, {}, {});
    const Report report = analyze(graph, timeline);
    const Evaluation expected = evaluate(*program, problem);
    EXPECT_EQ(report.makespan, expected.makespan);
    for (size_t d = 0; d < expected.devices.size(); ++d) {
      EXPECT_EQ(report.devices[d].peak_activation, expected.devices[d].peak_activation);
    }
    std::map<std::pair<bool, size_t>, double> link_free;
    std::map<std::string, double> out_end;
    for (TaskId task = 0; task < graph.size(); ++task) {
      const TaskClass& of = graph.task_class(task);
      if (of.kind != TaskKind::kCopyOut && of.kind != TaskKind::kCopyIn) continue;
      double& free =
          link_free[{of.kind == TaskKind::kCopyOut, program->copies()->link_of(of.device)}];
      EXPECT_LE(free, timeline.start[task]) << graph.name(task);
      free = timeline.end[task];
      const std::string activation = graph.name(task).substr(0, graph.name(task).find(' '));
      if (of.kind == TaskKind::kCopyOut) {
        out_end[activation] = timeline.end[task];
      } else {
        EXPECT_LE(out_end.at(activation), timeline.start[task]) << graph.name(task);
      }
    }
  }
}

// PipeOffload, section 4: half of the activations, those that wait longest, are more than half of
// the peak. On 8 devices what is on its way takes up the difference: there it is about half.
TEST(Offload, OfHalfTheChunksLowersThePeakByMoreThanHalf) {
  for (const int p : {16, 32}) {
    for (const int v : {4, 5, 8}) {
      const Problem problem = with_copies({p, v, 4 * p, 1}, {1, 1, 1, 0}, 0.2);
      const double kept = planned("gis-h", problem).peak_activation().value();
      const double offloaded = planned("po-h", problem).peak_activation().value();
      EXPECT_LT(offloaded, kept / 2) << "p " << p << " v " << v;
    }
  }
}

// Likewise: what PO-F keeps falls with p v, as a share of what the model's layers keep in 1F1B.
TEST(Offload, OfAllChunksKeepsLessTheMoreStagesThereAre) {
  double last = 1;
  for (const int p : {4, 8, 16, 32}) {
    const int v = 64 / p;
    const Problem problem = with_copies({p, v, 2 * p, 1}, {1, 1, 1, 0}, 0.2);
    const double share = planned("po-f", problem).peak_activation().value() / (p * v);
    EXPECT_LE(share, last) << "p " << p;
    last = share;
  }
}

TEST(Offload, TakesOnlyWhatTheScopeNames) {
  const Problem problem = with_copies({4, 2, 8, 1}, {1, 1, 1, 0}, 0.1);
  const Program kept = find_schedule("gis")->plan(problem);
  const std::vector<bool> some{true, false, false, true, false, true, false, false};
  const Program plan = with_offload(kept, problem, {.which = {1}, .microbatches = some});
  size_t copies = 0;
  for (const LinkCopies& link : plan.copies()->links) {
    for (const Copy& copy : link.out) {
      EXPECT_EQ(copy.chunk, 1);
      EXPECT_TRUE(some[copy.unit]);
      ++copies;
    }
  }
  EXPECT_GT(copies, 0U);
}

TEST(Offload, LeavesEverythingOnTheDeviceWhereNothingComesBackInTime) {
  const Problem problem = with_copies({4, 1, 8, 1}, {1, 1, 1, 0}, 100);
  const Program plan = with_offload(find_schedule("1f1b")->plan(problem), problem, 1);
  for (const LinkCopies& link : plan.copies()->links) EXPECT_TRUE(link.out.empty());
}

// A stage without layers takes no time and keeps nothing, its neighbours do.
TEST(Offload, LeavesStagesWithoutLayersAlone) {
  for (const int empty : {0, 1, 2, 3}) {
    Problem problem = with_copies({4, 1, 12, 1}, {1, 1, 1, 0}, 0.2);
    problem.stages[empty] = {};
    const Program kept = find_schedule("1f1b")->plan(problem);
    const Program plan = with_offload(kept, problem, 1);
    EXPECT_EQ(evaluate(plan, problem).makespan, evaluate(kept, problem).makespan) << empty;
    for (const LinkCopies& link : plan.copies()->links) {
      for (const Copy& copy : link.out) EXPECT_NE(static_cast<int>(copy.device), empty);
    }
  }
}

TEST(Offload, RefusesAPlanThatIsNone) {
  const Problem problem = with_copies({2, 1, 2, 1}, {1, 1, 1, 0}, 0.1);
  const Program program = find_schedule("1f1b")->plan(problem);
  CopyPlan plan;
  plan.links.resize(2);
  plan.gates.resize(2);
  EXPECT_NO_THROW((void)program.with_copies(plan));
  plan.links[0].out.push_back({.device = 0, .unit = 1});
  EXPECT_THROW((void)program.with_copies(plan), LogicError) << "no way back";
  plan.links[0].in.push_back({.device = 0, .unit = 0});
  EXPECT_THROW((void)program.with_copies(plan), LogicError) << "another activation";
  plan.links[0].in[0].unit = 1;
  EXPECT_NO_THROW((void)program.with_copies(plan));
  plan.links[1].out.push_back({.device = 0, .unit = 0});
  EXPECT_THROW((void)program.with_copies(plan), LogicError) << "not its link";
  plan.links.pop_back();
  EXPECT_THROW((void)program.with_copies(plan), LogicError) << "a device without a link";
}

}  // namespace
}  // namespace pipesim::offload_test
