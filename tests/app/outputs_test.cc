// Commands destroy nothing with their output: no input, no other output, and no earlier file when
// something fails.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "tests/app/command.h"

namespace pipesim::outputs_test {
namespace {

namespace fs = std::filesystem;
using testing::Outcome;

constexpr const char* kOutputsScenario =
    "schedule: 1f1b\nparallel: {pipeline_model_parallel_size: 2}\nbatch: {num_microbatches: 4}\n"
    "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n";
const std::string kSweep =
    std::string(kOutputsScenario) + "sweep: {grid: {cost.transfer: [1 ms, 2 ms]}}\n";

class Outputs : public testing::Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    write("s.yaml", kOutputsScenario);
    write("w.yaml", kSweep);
  }
  void expect_refused(const std::string& arguments, const std::string& message) const {
    SCOPED_TRACE(arguments);
    const size_t before = files();
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(message), std::string::npos) << outcome.output;
    EXPECT_EQ(files(), before);
  }
  [[nodiscard]] mode_t mode(const char* name) const {
    struct stat status {};
    EXPECT_EQ(::stat((folder_ / name).c_str(), &status), 0);
    return status.st_mode & 07777;
  }
};

TEST_F(Outputs, NeverReplaceAnInput) {
  expect_refused("run s.yaml --json s.yaml", "command line:1:27: 's.yaml' is an input");
  fs::create_symlink("s.yaml", folder_ / "link");
  fs::create_hard_link(folder_ / "s.yaml", folder_ / "hard");
  expect_refused("run s.yaml --csv=link", "'link' is an input");
  expect_refused("show s.yaml -o hard", "'hard' is an input");
  EXPECT_EQ(run("export s.yaml -o a.csv").code, 0);
  const std::string schedule = read("a.csv");
  expect_refused("import a.csv -o a.csv", "'a.csv' is an input");
  // A file that a scenario names is an input as well.
  expect_refused("run s.yaml 'schedule={csv: a.csv}' --trace a.csv", "'a.csv' is an input");
  EXPECT_EQ(read("s.yaml"), kOutputsScenario);
  EXPECT_EQ(read("a.csv"), schedule);
}

TEST_F(Outputs, ThatLinkToThemselvesAreRefused) {
  fs::create_symlink("self", folder_ / "self");
  fs::create_symlink("there", folder_ / "back");
  fs::create_symlink("back", folder_ / "there");
  for (const std::string name : {"self", "there"}) {
    expect_refused("run s.yaml --json " + name, "Too many levels of symbolic links");
    expect_refused("sweep w.yaml -o " + name, "Too many levels of symbolic links");
    EXPECT_TRUE(fs::is_symlink(folder_ / name));
  }
}

TEST_F(Outputs, NeverReplaceEachOther) {
  expect_refused("run s.yaml --json x --csv ./x", "command line:1:35: './x' is another output");
  fs::create_symlink("x", folder_ / "link");
  expect_refused("run s.yaml --json x --csv link", "'link' is another output");
  EXPECT_EQ(run("run s.yaml --json /dev/null --csv /dev/null").code, 0);
}

TEST_F(Outputs, OfASweepLeaveItsStore) {
  fs::create_directory(folder_ / "d");
  for (const char* name : {"results.sqlite", "results.sqlite-journal", "results.csv", "failed.csv",
                           "sweep.yaml", "results.partial.csv"}) {
    expect_refused(fmt::format("sweep w.yaml -o d --json d/{}", name), "is another output");
  }
  ASSERT_EQ(run("sweep w.yaml -o d").code, 0);
  EXPECT_EQ(run("sweep d/sweep.yaml -o d").code, 0) << "its own copy is what it was";
  expect_refused("sweep d/sweep.yaml cost.forward='2 ms' -o d", "is an input");
  EXPECT_EQ(read("d/sweep.yaml"), kSweep);
}

TEST_F(Outputs, KeepModesAndFollowLinks) {
  write("old.json", "old");
  ::chmod((folder_ / "old.json").c_str(), 0640);
  EXPECT_EQ(run("run s.yaml --json old.json").code, 0);
  EXPECT_EQ(mode("old.json"), 0640U);
  EXPECT_EQ(shell("umask 027; " PIPESIM_EXECUTABLE " run s.yaml --json new.json").code, 0);
  EXPECT_EQ(mode("new.json"), 0640U);
  fs::create_directory(folder_ / "d");
  fs::create_symlink("d/far.json", folder_ / "near.json");
  EXPECT_EQ(run("run s.yaml --json near.json").code, 0) << "a link to what is not there yet";
  EXPECT_TRUE(fs::is_symlink(folder_ / "near.json"));
  EXPECT_EQ(read("d/far.json"), read("old.json"));
  const std::string longest(250, 'n');
  EXPECT_EQ(run("run s.yaml --json " + longest).code, 0);
}

TEST_F(Outputs, AreTheSameBytesInAnyEnvironment) {
  const std::string command = PIPESIM_EXECUTABLE " run s.yaml --json a.json --csv a.csv";
  ASSERT_EQ(shell(command).code, 0);
  const std::string document = read("a.json"), table = read("a.csv");
  for (const char* environment :
       {"LC_ALL=C", "LC_ALL=C.UTF-8", "LC_ALL=de_DE.UTF-8", "LC_ALL=tr_TR.UTF-8", "TZ=Asia/Tokyo",
        "umask 077;", "umask 0;", "exec <&-;", "exec > /dev/null;", "exec 2>&-;", "NO_COLOR=1",
        "TERM=xterm-256color", "COLUMNS=20", "env -i", "setsid", "nice -n 19"}) {
    ASSERT_EQ(shell(fmt::format("rm a.json a.csv; {} {}", environment, command)).code, 0)
        << environment;
    EXPECT_EQ(read("a.json"), document) << environment;
    EXPECT_EQ(read("a.csv"), table) << environment;
  }
}

// Each with the reason, and none in part.
TEST_F(Outputs, SayWhyTheSystemTakesNoMore) {
  write("old.json", "old");
  const auto expect = [this](const std::string& line, const std::string& message) {
    const Outcome outcome = shell(line);
    EXPECT_EQ(outcome.code, 1) << outcome.output;
    EXPECT_NE(outcome.output.find(message), std::string::npos) << outcome.output;
  };
  const std::string program = PIPESIM_EXECUTABLE;
  expect(program + " list schedules > /dev/full",
         "cannot write to standard output: No space left on device");
  expect(program + " run s.yaml --csv a.csv --json - > /dev/full",
         "No space left on device; nothing has been written");
  expect(program + " run s.yaml --csv a.csv --json /dev/full",
         "cannot write '/dev/full': No space");
  expect(program + " list schedules >&-", "cannot write to standard output: Bad file descriptor");
  expect("ulimit -f 1; " + program + " run s.yaml --csv a.csv --json old.json > /dev/null",
         "cannot write 'old.json': File too large; nothing has been written");
  EXPECT_EQ(read("old.json"), "old");
  EXPECT_EQ(files(), 3U) << "the scenario, the sweep and the document";
}

// A command whose one output is complete while the other waits for somebody to read.
const std::string kWaits = PIPESIM_EXECUTABLE " run s.yaml --csv a.csv --json pipe";

TEST_F(Outputs, LeaveNothingUnfinishedBehindASignal) {
  for (const char* signal : {"INT", "TERM", "HUP"}) {
    const Outcome outcome =
        shell(fmt::format("rm -f pipe; mkfifo pipe; timeout -s {} 1 {}; ls", signal, kWaits));
    EXPECT_EQ(outcome.output, "pipe\ns.yaml\nw.yaml\n") << signal;
  }
}

TEST_F(Outputs, TakeAwayWhatADeadCommandLeft) {
  const std::string again = PIPESIM_EXECUTABLE " run s.yaml --csv a.csv > /dev/null";
  const Outcome outcome =
      shell("exec 2> /dev/null; mkfifo pipe; " + kWaits +
            " & writer=$!; for i in $(seq 500); do ls | grep -q unfinished && break; sleep 0.01; "
            "done; " +
            again + "; ls | grep -c unfinished; kill -9 $writer; wait $writer; " +
            "ls | grep -c unfinished; " + again + "; ls | grep -c unfinished; true");
  // Whoever lives keeps its own.
  EXPECT_EQ(outcome.output, "1\n1\n0\n");
}

}  // namespace
}  // namespace pipesim::outputs_test
