// Transfers that hold the compute stream, in the task graph.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>

#include "sim/core/error.h"
#include "sim/engine/engine.h"
#include "sim/execution/comm_batches.h"
#include "sim/execution/evaluate.h"
#include "sim/graph/build.h"
#include "sim/planning/schedule.h"
#include "tests/pipeline/problems.h"

namespace pipesim::blocking_test {
namespace {

BuildOptions blocking(CallGroups calls) {
  BuildOptions options;
  options.blocking = calls;
  return options;
}

double replayed(const std::shared_ptr<const Program>& program, const Problem& problem,
                const BuildOptions& options) {
  const TaskGraph graph = build_task_graph(program, problem, options);
  return std::ranges::max(make_replay_engine()->run(graph, {}, {}).end);
}

// The rule in its plainest form: every device in turn, as far as it is known when its messages were
// issued at both ends.
class Rendezvous {
 public:
  Rendezvous(const Program& program, const Problem& problem, CallGroups calls)
      : program_(program), problem_(problem), batches_(program, calls) {}

  // Nothing when devices hold each other for good.
  std::optional<double> makespan() {
    double last = 0;
    for (bool goes_on = true; goes_on;) {
      const size_t known = issued_.size();
      last = 0;
      bool all = true;
      for (int device = 0; device < program_.shape().devices; ++device) {
        const auto end = run(device);
        all = all && end.has_value();
        last = std::max(last, end.value_or(0));
      }
      if (all) return last;
      goes_on = issued_.size() > known;
    }
    return std::nullopt;
  }

 private:
  std::optional<double> run(int device) {
    double clock = 0;
    const auto passes = program_.passes(device);
    const auto all = batches_.batches(device);
    size_t next = 0;
    for (std::uint32_t at = 0; at <= passes.size(); ++at) {
      for (; next < all.size() && all[next].before == at; ++next) {
        const auto after = exchange(device, all[next], clock);
        if (!after) return std::nullopt;
        clock = *after;
      }
      if (at < passes.size()) {
        clock += pass_seconds(problem_, program_, device, passes[at]).value();
      }
    }
    return clock;
  }

  std::optional<double> exchange(int device, const CommBatch& batch, double clock) {
    for (const MessageId id : batches_.messages(device, batch)) issued_[{id, device}] = clock;
    double end = clock;
    for (const MessageId id : batches_.messages(device, batch)) {
      const Message message = batches_.message(id);
      const Placement& place = program_.placement();
      const auto sent = issued_.find({id, place.device(message.from)});
      const auto taken = issued_.find({id, place.device(message.to)});
      if (sent == issued_.end() || taken == issued_.end()) return std::nullopt;
      const int boundary = message.forward ? message.from : message.to;
      end = std::max(
          end, std::max(sent->second, taken->second) + problem_.stage(boundary).transfer.value());
    }
    return end;
  }

  const Program& program_;
  const Problem& problem_;
  CommBatches batches_;
  std::map<std::pair<MessageId, int>, double> issued_;
};

constexpr CallGroups kAllCalls[] = {CallGroups::kEveryPass, CallGroups::kMegatron,
                                    CallGroups::kDualPipe};

TEST(Blocking, ReplaysTheRendezvousOfRandomPrograms) {
  testing::Random random(20);
  int held = 0;
  int ran = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto [problem, made] = testing::random_case(random, true);
    const auto program = std::make_shared<const Program>(made);
    for (const CallGroups calls : kAllCalls) {
      const auto wanted = Rendezvous(*program, problem, calls).makespan();
      if (wanted) {
        EXPECT_EQ(replayed(program, problem, blocking(calls)), *wanted) << i;
        EXPECT_GE(*wanted, evaluate(*program, problem).makespan.value()) << i;
        ++ran;
      } else {
        EXPECT_THROW(build_task_graph(program, problem, blocking(calls)), InfeasibleError) << i;
        ++held;
      }
    }
  }
  EXPECT_GT(ran, 500);
  EXPECT_GT(held, 50) << "no case tests the refusal";
}

TEST(Blocking, IsNeverFasterThanOverlappingOnAnySchedule) {
  int slower = 0;
  int shapes = 0;
  for (const Schedule* schedule : schedules()) {
    for (const int p : {1, 2, 3, 4, 6, 8}) {
      for (const int m : {1, p, p + 1, 2 * p, 4 * p}) {
        for (const double transfer : {0.0, 1.0, 7.0}) {
          const Shape shape{p, schedule->default_chunks, m, 1};
          Problem problem =
              testing::make_problem(shape, schedule->place(p, shape.chunks), {10, 12, 8, transfer});
          for (StageCost& cost : problem.stages) cost.overlapped = Seconds(27);
          if (schedule->refusal(problem) || !schedule->calls) continue;
          SCOPED_TRACE(fmt::format("{} p {} m {} T {}", schedule->name, p, m, transfer));
          const auto program = std::make_shared<const Program>(schedule->plan(problem));
          const double held = replayed(program, problem, blocking(*schedule->calls));
          const double free = replayed(program, problem, {});
          EXPECT_GE(held, free);
          EXPECT_EQ(Rendezvous(*program, problem, *schedule->calls).makespan(), held);
          ++shapes;
          if (held > free) ++slower;
        }
      }
    }
  }
  EXPECT_GT(slower, shapes / 3);
}

// Two devices, two microbatches, T = 1, Megatron-LM's calls (device 0 has no warm-up call to take
// together with its first gradient, F1 and B0 go in one):
//   device 0: F0 0-1 {SF0} 1-2 F1 2-3 {SF1, RB0} .. X0 .. {RB1} X1
//   device 1: {RF0} 1-2 F0 2-3 X0 3-5 {SB0, RF1} 5-6 F1 6-7 X1 7-9 {SB1} 9-10
TEST(Blocking, HoldsADeviceWhileItSends) {
  const Problem problem = testing::make_problem({2, 1, 2, 1}, {1, 1, 1, 1});
  const auto program = std::make_shared<const Program>(find_schedule("1f1b")->plan(problem));
  const TaskGraph graph = build_task_graph(program, problem, blocking(CallGroups::kMegatron));
  const Timeline timeline = make_replay_engine()->run(graph, {}, {});
  std::map<std::string, double> start;
  for (TaskId task = 0; task < graph.size(); ++task) start[graph.name(task)] = timeline.start[task];
  EXPECT_EQ(start.at("0F1"), 2) << "held by sending 0F0";
  EXPECT_EQ(start.at("0F1 -> device 1"), 5) << "device 1 takes it when it has a gradient to send";
  EXPECT_EQ(start.at("1B0 -> device 0"), 5);
  EXPECT_EQ(start.at("0BW0"), 6);
  EXPECT_EQ(start.at("1BW1"), 7);
  EXPECT_EQ(start.at("0BW1"), 10);
}

TEST(Blocking, HoldsEachOfSeveralPipelinesAndIterations) {
  const Problem problem = testing::make_problem({4, 1, 8, 1}, {10, 12, 8, 3});
  const auto program = std::make_shared<const Program>(find_schedule("1f1b")->plan(problem));
  BuildOptions options = blocking(CallGroups::kMegatron);
  const double once = replayed(program, problem, options);
  options.iterations = 3;
  EXPECT_EQ(replayed(program, problem, options), 3 * once);
  const TaskGraph two = build_task_graph(program, problem, {{0, 1, 2, 3}, {4, 5, 6, 7}}, options);
  EXPECT_EQ(std::ranges::max(make_replay_engine()->run(two, {}, {}).end), 3 * once);
}

TEST(Blocking, LetsIterationsOverlapUnderPostValidation) {
  Problem problem = testing::make_problem({2, 1, 4, 1}, {10, 12, 8, 3});
  problem.stages[1].backward_weight = Seconds(30);  // the last device ends last
  const auto program = std::make_shared<const Program>(find_schedule("zb-h1")->plan(problem));
  BuildOptions options = blocking(CallGroups::kEveryPass);
  const double once = replayed(program, problem, options);
  options.iterations = 3;
  options.sync = OptimizerSync::kPostValidation;
  EXPECT_LT(replayed(program, problem, options), 3 * once);
  EXPECT_GE(replayed(program, problem, options), 3 * 4 * (10 + 12 + 30)) << "device 1 computes";
}

}  // namespace
}  // namespace pipesim::blocking_test
