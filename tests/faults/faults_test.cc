// Every call of the system that a command makes fails once, and all after it: each time the command
// says so with exit code 1 or 2, no output is there in part, and nothing unfinished stays.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/app/command.h"
#include "tests/sanitized.h"

namespace pipesim::faults_test {
namespace {

namespace fs = std::filesystem;
using testing::Outcome;

constexpr const char* kScenario =
    "schedule: [1f1b, zb-h1]\nparallel: {pipeline_model_parallel_size: 4}\n"
    "batch: {num_microbatches: 16}\n"
    "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n";

class Faults : public testing::Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (testing::kSanitized) GTEST_SKIP() << "no library comes before a sanitizer's";
    write("s.yaml", kScenario);
    write("w.yaml", std::string(kScenario) +
                        "sweep: {grid: {cost.transfer: [1 ms, 2 ms, 3 ms, 4 ms, 5 ms, 6 ms]}}\n");
  }

  [[nodiscard]] Outcome run_with(const char* call, long number, int error,
                                 const std::string& arguments) const {
    return shell(
        fmt::format("PIPESIM_FAULT={}:{}:{} PIPESIM_FAULT_COUNT=/tmp/$$ LD_PRELOAD={} {} {}", call,
                    number, error, PIPESIM_FAULTS, PIPESIM_EXECUTABLE, arguments) +
        "; code=$?; cat /tmp/$$; rm -f /tmp/$$; exit $code");
  }
  // How many there are when none fails.
  [[nodiscard]] long calls(const char* call, const std::string& arguments) const {
    const Outcome outcome = run_with(call, 0, 0, arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    const size_t last = outcome.output.rfind('\n', outcome.output.size() - 2);
    return std::strtol(outcome.output.c_str() + (last == std::string::npos ? 0 : last + 1), nullptr,
                       10);
  }
  void expect_told(const Outcome& outcome, const std::string& what) const {
    EXPECT_TRUE(outcome.code == 1 || outcome.code == 2) << what << outcome.code << outcome.output;
    EXPECT_NE(outcome.output.find("pipesim: "), std::string::npos) << what << outcome.output;
    EXPECT_EQ(outcome.output.find("internal error"), std::string::npos) << what << outcome.output;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      EXPECT_FALSE(entry.path().string().ends_with(".unfinished")) << what << entry.path();
    }
  }
  static void count(int injected) {
    RecordProperty("faults", injected);
    fmt::print("{} faults\n", injected);
  }
};

TEST_F(Faults, LeaveOutputsWholeOrAsTheyWere) {
  const std::string command = "run s.yaml --json a.json --csv a.csv --memory m.csv";
  ASSERT_EQ(run(command).code, 0);
  const std::string whole = read("a.json");
  int injected = 0;
  for (const auto& [call, error] :
       std::initializer_list<std::pair<const char*, int>>{{"write", ENOSPC},
                                                          {"write", EIO},
                                                          {"fsync", EIO},
                                                          {"rename", ENOSPC},
                                                          {"open", EMFILE}}) {
    const long all = calls(call, command);
    ASSERT_GT(all, 0) << call;
    for (long number = 1; number <= all; ++number, ++injected) {
      write("a.json", "old");
      const Outcome outcome = run_with(call, number, error, command);
      const std::string what = fmt::format("{} {} of {}: ", call, number, all);
      const std::string now = read("a.json");
      EXPECT_TRUE(now == "old" || now == whole) << what << now.substr(0, 100);
      // Facts of the machine, such as its number of cores, may also be unknown.
      if (outcome.code == 0 && call == std::string("open")) {
        EXPECT_EQ(now, whole) << what;
        continue;
      }
      expect_told(outcome, what);
    }
  }
  count(injected);
}

// A store that loses its disk goes on from what it had, and ends with the same bytes.
TEST_F(Faults, LoseNothingOfASweep) {
  ASSERT_EQ(run("sweep w.yaml -o whole").code, 0);
  int injected = 0;
  for (const auto& [call, error] : std::initializer_list<std::pair<const char*, int>>{
           {"write", ENOSPC}, {"write", EIO}, {"fsync", EIO}, {"rename", ENOSPC}}) {
    const std::string command = "sweep w.yaml -j 1 -o out";
    const long all = calls(call, command);
    ASSERT_GT(all, 0) << call;
    for (long number = 1; number <= all; ++number, ++injected) {
      fs::remove_all(folder_ / "out");
      const std::string what = fmt::format("{} {} of {}: ", call, number, all);
      const Outcome outcome = run_with(call, number, error, command);
      // How many there are depends on how often results came.
      if (outcome.code != 0) expect_told(outcome, what);
      const Outcome again = run(command);
      EXPECT_EQ(again.code, 0) << what << again.output;
      for (const char* table : {"results.csv", "failed.csv", "sweep.yaml"}) {
        EXPECT_EQ(read(std::string("out/") + table), read(std::string("whole/") + table)) << what;
      }
    }
    fs::remove_all(folder_ / "out");
  }
  count(injected);
}

TEST_F(Faults, OutOfMemoryIsSaid) {
  const std::string command = "run s.yaml --json a.json";
  const long all = calls("malloc", command);
  ASSERT_GT(all, 10);
  int injected = 0;
  const long step = std::max(1L, all / 60);
  bool in_main = false;
  for (long number = 1; number <= all; number += step) {
    const std::string what = fmt::format("malloc {} of {}: ", number, all);
    const Outcome outcome = run_with("malloc", number, ENOMEM, command);
    // The last may be made for nothing but speed.
    if (outcome.code == 0) continue;
    // Before main nobody catches anything; from there on everything is.
    constexpr int kAborted = 134;
    if (!in_main && outcome.code == kAborted) continue;
    in_main = true;
    ++injected;
    EXPECT_EQ(outcome.code, 1) << what << outcome.output;
    expect_told(outcome, what);
  }
  EXPECT_GT(injected, 5);
  count(injected);
}

}  // namespace
}  // namespace pipesim::faults_test
