// Every command under every limit that a system sets: it does without, or says with exit code 1
// what the system has refused. No limit is an internal error.
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "tests/app/command.h"
#include "tests/sanitized.h"

namespace pipesim::limits_test {
namespace {

using testing::Outcome;

constexpr const char* kScenario =
    "schedule: [1f1b, zb-h1]\nparallel: {pipeline_model_parallel_size: 2}\n"
    "batch: {num_microbatches: 4}\n"
    "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n"
    "memory: {kind: given, activation: 1 GiB, weight_stash: 0}\n";

constexpr const char* kLinks =
    "cluster: {node: {gpus: 2, link_bandwidth: 300 GB/s}, network: {bandwidth: 400 Gbps}}\n"
    "engine: {name: simgrid, gpu: host}\n";

const std::string kModelled = std::string(PIPESIM_SOURCE_DIR) + "/scenarios/llama3-70b-h100.yaml";

// One of each; a figure is drawn by nothing, in place of Python.
const std::array<std::string, 21> kCommands{
    "new --model llama3-8b --cluster dgx-h100 -o new.yaml",
    "run s.yaml --json run.json --csv run.csv",
    "run l.yaml cost.message='1 MiB'",
    "run l.yaml cost.message='1 MiB' perturb='{jitter: 0.01, runs: 4}'",
    "execute s.yaml schedule=1f1b",
    "sweep w.yaml -j 2 -o swept",
    "search s.yaml --csv found.csv",
    "plan --model llama3-8b --cluster dgx-h100 --gpus 8 --global-batch-size 16 --seq-length 4096 "
    "--csv plan.csv --json plan.json",
    "sensitivity s.yaml --csv sensitivity.csv",
    "show s.yaml schedule=1f1b --format svg -o show.svg",
    "plot timeline s.yaml -o figure.svg",
    "report s.yaml -o report.html",
    "gallery -o gallery",
    "export s.yaml schedule=1f1b -o order.csv",
    "list schedules",
    "compare s.yaml 1f1b zb-h1 --json compare.json",
    "improve s.yaml 1f1b -o better.csv",
    "prove " PIPESIM_SOURCE_DIR
    "/scenarios/quickstart.yaml v-half parallel.pipeline_model_parallel_size=6 "
    "batch.num_microbatches=8 --seconds 1",
    "workbench s.yaml -o workbench.html",
    "calibrate --device cpu --hidden 64 --sequence 64 -o calibration",
    "goodput " + kModelled + " schedule=1f1b --tokens 1T --runs 2 --json goodput.json"};

class Limits : public testing::Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (testing::kSanitized) GTEST_SKIP() << "a sanitizer needs more than these limits leave";
    write("s.yaml", kScenario);
    write("l.yaml", std::string(kScenario) + kLinks);
    write("w.yaml", std::string(kScenario) + "sweep: {grid: {cost.transfer: [1 ms, 2 ms]}}\n");
  }

  // `before` is shell that sets the limit.
  void expect_answers(const std::string& before) const {
    for (const std::string& command : kCommands) {
      (void)shell("rm -rf swept");
      const Outcome outcome = shell("export PIPESIM_PYTHON=/bin/true; ( " + before + " " +
                                    PIPESIM_EXECUTABLE + " " + command + " )");
      const std::string what = before + " " + command + ": " + std::to_string(outcome.code) + " " +
                               outcome.output.substr(0, 2000);
      // The shell that starts the command and the loader of libraries have needs of their own.
      if (outcome.output.find("error while loading shared libraries") != std::string::npos)
        continue;
      EXPECT_TRUE(outcome.code == 0 || outcome.code == 1) << what;
      EXPECT_EQ(outcome.output.find("internal error"), std::string::npos) << what;
      // Without CBC prove answers so, whatever the limit.
      const bool undecided = outcome.output.find("not proven") != std::string::npos;
      if (outcome.code == 1 && !undecided) {
        EXPECT_NE(outcome.output.find("pipesim"), std::string::npos) << what;
      }
    }
  }
  void expect_answers_with_fault(const char* call, int error) const {
    for (const int number : {1, 2, 4}) {
      expect_answers(
          fmt::format("PIPESIM_FAULT={}:{}:{} LD_PRELOAD={}", call, number, error, PIPESIM_FAULTS));
    }
  }
};

TEST_F(Limits, OfFilesThatAreOpenAreSaid) {
  for (const int files : {4, 5, 6, 8, 12}) expect_answers(fmt::format("ulimit -n {};", files));
}

TEST_F(Limits, OfTheSizeOfAFileAreSaid) {
  for (const int blocks : {0, 1, 8}) expect_answers(fmt::format("ulimit -f {};", blocks));
}

TEST_F(Limits, OfProcessesAreSaid) { expect_answers_with_fault("fork", EAGAIN); }

TEST_F(Limits, OfThreadsAreSaid) { expect_answers_with_fault("thread", EAGAIN); }

}  // namespace
}  // namespace pipesim::limits_test
