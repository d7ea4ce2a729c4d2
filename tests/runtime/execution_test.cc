// Real processes, real messages; gates order, completion and results, never times.
#include "sim/runtime/execution.h"

#include <csignal>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/core/error.h"
#include "sim/planning/schedule.h"
#include "sim/read/scenario.h"
#include "sim/runtime/plan.h"
#include "sim/runtime/processes.h"
#include "sim/runtime/timed_work.h"
#include "tests/case/cases.h"

namespace pipesim::runtime::execution_test {
namespace {

Case case_with(const std::string& schedule, const std::string& more = "", int devices = 4) {
  const std::string text = fmt::format(
      "schedule: {}\n"
      "parallel: {{pipeline_model_parallel_size: {}}}\n"
      "batch: {{num_microbatches: 12}}\n"
      "cost: {{kind: given, per: device, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 "
      "ms, overlapped: 28 ms, transfer: 1 ms, copy_out: 3 ms, copy_in: 3 ms, collective: 1 "
      "ms{}}}\n{}",
      schedule, devices,
      more.starts_with("vocabulary") ? ", output_forward: 3 ms, output_backward: 3 ms, "
                                       "input_forward: 1 ms, input_backward: 1 ms"
                                     : "",
      more);
  const Scenario scenario = read_scenario(YamlSource("test.yaml", text));
  return case_of(scenario, scenario.schedules.front());
}

constexpr ExecutionOptions kQuick{.mean_pass = 0.4e-3};

void expect_as_simulated(const Case& made, const ExecutionOptions& options = kQuick) {
  const auto execution = execute_timed(made, options);
  ASSERT_TRUE(execution) << made.label;
  EXPECT_EQ(execution->disorder, "") << made.label;
  EXPECT_TRUE(execution->same_results) << made.label;
  EXPECT_GE(execution->wall, execution->simulated) << made.label;  // waits are never cut short
}

TEST(Execution, OfEveryScheduleEndsInOrderWithTheResultsOfOneProcess) {
  for (const Schedule* schedule : schedules()) {
    if (!schedule->versions) expect_as_simulated(case_with(schedule->name));
  }
}

TEST(Execution, OfIterationsThatRunIntoEachOtherIsRefused) {
  EXPECT_THROW(expect_as_simulated(case_with("pipedream")), InfeasibleError);
}

TEST(Execution, InCallsEndsWithoutDeadlock) {
  for (const Schedule* schedule : schedules()) {
    if (!schedule->calls) continue;
    const Case made = case_with(schedule->name, "framework: {transfers: blocking}\n");
    ASSERT_TRUE(made.blocking);
    expect_as_simulated(made);
  }
}

TEST(Execution, AsPyTorchSendsEndsWithoutDeadlock) {
  for (const char* name : {"1f1b", "interleaved-1f1b", "zb-v", "gpipe"}) {
    const auto execution = execute_timed(case_with(name), {.mean_pass = 0.4e-3, .torch = true});
    EXPECT_EQ(execution->disorder, "") << name;
    EXPECT_TRUE(execution->same_results) << name;
    EXPECT_EQ(execution->semantics, Semantics::kTorch);
  }
  EXPECT_THROW((void)execute_timed(case_with("dualpipe"), {.torch = true}), InfeasibleError);
}

TEST(Execution, OfASharedVocabularyMeetsInItsCollectives) {
  for (const char* placement : {"interlaced", "vocab-1", "vocab-2"}) {
    for (const char* schedule : {"1f1b", "v-half"}) {
      expect_as_simulated(
          case_with(schedule, fmt::format("vocabulary: {{placement: {}}}\n", placement)));
    }
  }
}

TEST(Execution, CopiesShareTheLinkOfTheirSwitch) {
  const Case made = case_with("po-h", "offload: {devices_per_link: 2}\n");
  ASSERT_EQ(made.problem.devices_per_host_link, 2);
  expect_as_simulated(made);
}

TEST(Execution, NamesTheTaskThatRanTooEarly) {
  const Case made = case_with("1f1b", "", 2);
  const ExecutionPlan plan = plan_execution(made, Pace::kTimed, 1e-4, false);
  SharedBoards boards(2, NoteIds(*plan.program).count(), kNoteBytes, 1 << 20);
  auto records = run_processes(
      2, boards, 30,
      [&](int device, Board& board) {
        const auto work = make_timed_work(*plan.program, device);
        return execute(*plan.program, plan.scripts[device], device, *work, board);
      },
      [](int, std::uint32_t) { return ""; });
  ASSERT_EQ(disorder_of(plan, records), "");
  records[1].items[0][0].start -= 1;
  EXPECT_NE(disorder_of(plan, records).find("1F0 started"), std::string::npos);
  records[1].items[0][0].start = -1;
  EXPECT_EQ(disorder_of(plan, records), "1F0 did not run");
}

std::string reason_of(double deadline, const std::function<void(int device)>& misdeed) {
  const ExecutionPlan plan = plan_execution(case_with("1f1b"), Pace::kTimed, 1e-3, false);
  SharedBoards boards(4, NoteIds(*plan.program).count(), kNoteBytes, 1 << 20);
  try {
    (void)run_processes(
        4, boards, deadline,
        [&](int device, Board& board) {
          misdeed(device);
          const auto work = make_timed_work(*plan.program, device);
          return execute(*plan.program, plan.scripts[device], device, *work, board);
        },
        [](int device, std::uint32_t item) { return fmt::format("{} {}", device, item); });
  } catch (const InfeasibleError& error) {
    // No child is left, not even a dead one.
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    return error.what();
  }
  return "";
}

TEST(Execution, SaysOfWhatADeviceDied) {
  EXPECT_EQ(reason_of(30,
                      [](int device) {
                        if (device == 2) std::raise(SIGKILL);
                      }),
            "device 2 was ended by signal 9 (Killed)");
  EXPECT_EQ(reason_of(30,
                      [](int device) {
                        if (device == 1) throw InfeasibleError("no more coffee");
                      }),
            "device 1 failed: no more coffee");
}

TEST(Execution, EndsWhatHangsAndSaysWhereItStands) {
  const std::string reason = reason_of(0.5, [](int device) {
    if (device == 3) pause();
  });
  EXPECT_EQ(reason.find("not done after 0.5 s:"), 0U) << reason;
  EXPECT_NE(reason.find("device 3 stands"), std::string::npos) << reason;
}

TEST(Execution, IsRefusedWhereAProgramDoesNotWaitForItsMessages) {
  const Case made = case_with("{name: interleaved-1f1b, zero_bubble_table5_dependencies: true}");
  EXPECT_THROW((void)execute_timed(made, kQuick), InfeasibleError);
}

}  // namespace
}  // namespace pipesim::runtime::execution_test
