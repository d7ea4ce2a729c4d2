// Whatever ends a command, ends the processes that it has started.
#include <array>
#include <cctype>
#include <chrono>
#include <csignal>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "sim/core/child_process.h"
#include "tests/app/command.h"
#include "tests/sanitized.h"

namespace pipesim::children_test {
namespace {

namespace fs = std::filesystem;

struct Process {
  pid_t parent = 0;
  char state = 'Z';
};

// Nothing where it has gone.
Process process_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name = text.rfind(')');
  if (name == std::string::npos) return {};
  return {std::atoi(text.c_str() + name + 3), text[name + 2]};
}

// The processes below `root`, those of its children included.
std::vector<pid_t> descendants(pid_t root) {
  std::vector<std::pair<pid_t, pid_t>> all;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (std::isdigit(static_cast<unsigned char>(name.front())) == 0) continue;
    const pid_t pid = std::atoi(name.c_str());
    all.emplace_back(pid, process_of(pid).parent);
  }
  std::vector<pid_t> found{root};
  for (size_t i = 0; i < found.size(); ++i) {
    for (const auto& [pid, parent] : all) {
      if (parent == found[i]) found.push_back(pid);
    }
  }
  found.erase(found.begin());
  return found;
}

template <class Done>
bool within(double seconds, Done done) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (!done()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

bool have_gone(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    if (process_of(pid).state != 'Z') return false;
  }
  return true;
}

class Children : public testing::Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (testing::kSanitized) GTEST_SKIP() << "too slow to be at work when the signal comes";
  }

  // In a session of its own, so that a signal to the group is the terminal's.
  [[nodiscard]] pid_t start(const std::string& arguments) const {
    const pid_t child = fork_child();
    if (child == 0) {
      ::setsid();
      const std::string line = "cd '" + folder_.string() + "' && exec " + PIPESIM_EXECUTABLE + " " +
                               arguments + " > /dev/null 2>&1";
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
    return child;
  }

  void expect_end_with(const std::string& arguments) const {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
      for (const bool group : {false, true}) {
        const std::string what =
            arguments + ": " + strsignal(signal) + (group ? " to the group" : "");
        const pid_t pid = start(arguments);
        std::vector<pid_t> children;
        EXPECT_TRUE(within(20, [&] { return !(children = descendants(pid)).empty(); })) << what;
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        children = descendants(pid);
        ::kill(group ? -pid : pid, signal);
        // A command that catches the signal may need a moment.
        EXPECT_TRUE(within(10, [pid] { return process_of(pid).state == 'Z'; })) << what;
        (void)::kill(pid, SIGKILL);
        (void)status_of(pid);
        EXPECT_TRUE(within(3, [&] { return have_gone(children); })) << what;
        for (const pid_t child : children) (void)::kill(child, SIGKILL);
      }
    }
  }
};

TEST_F(Children, OfProveEndWithIt) {
  if (shell("command -v cbc").code != 0) GTEST_SKIP() << "there is no CBC (coinor-cbc)";
  expect_end_with("prove " + quickstart_ +
                  " v-half parallel.pipeline_model_parallel_size=6 batch.num_microbatches=8 "
                  "--seconds 60");
}

TEST_F(Children, OfAFigureEndWithIt) {
  write("slow.sh", "#!/bin/sh\nexec sleep 60\n");
  (void)shell("chmod +x slow.sh");
  ::setenv("PIPESIM_PYTHON", "./slow.sh", 1);
  expect_end_with("plot timeline " + quickstart_ + " -o figure.svg");
  ::unsetenv("PIPESIM_PYTHON");
}

constexpr const char* kLong =
    "schedule: 1f1b\nparallel: {pipeline_model_parallel_size: 32}\n"
    "batch: {num_microbatches: 131072}\n"
    "cost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n";

TEST_F(Children, OfSimGridEndWithIt) {
  write("long.yaml",
        std::string(kLong) +
            "cluster: {node: {gpus: 8, link_bandwidth: 300 GB/s}, network: {bandwidth: "
            "400 Gbps}}\nengine: {name: simgrid, gpu: host}\n");
  expect_end_with("run long.yaml cost.message='64 MiB' batch.num_microbatches=16384");
}

TEST_F(Children, OfASweepEndWithIt) {
  write("long.yaml", std::string(kLong) + "sweep: {grid: {cost.transfer: [1 ms, 2 ms, 3 ms]}}\n");
  expect_end_with("sweep long.yaml -j 2 -o \"$(mktemp -d out.XXXX)\"");
}

TEST_F(Children, OfAnExecutionEndWithIt) {
  expect_end_with("execute " + quickstart_ + " schedule=1f1b cost.forward='2 s'");
}

}  // namespace
}  // namespace pipesim::children_test
