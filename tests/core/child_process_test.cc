#include "sim/core/child_process.h"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/core/error.h"
#include "tests/folder.h"

namespace pipesim::child_process_test {
namespace {

class Program : public testing::Folder {};

TEST_F(Program, RunsInItsFolderAndPrintsIntoItsLog) {
  const auto child = start_program({"sh", "-c", "pwd; cat; exit 3"}, folder_, "log.txt");
  ASSERT_TRUE(child);
  EXPECT_EQ(how_it_ended(status_of(*child)), "ended with code 3");
  EXPECT_EQ(read("log.txt"), std::filesystem::canonical(folder_).string() + "\n");
}

TEST_F(Program, IsNothingWhereThereIsNone) {
  EXPECT_FALSE(start_program({"no-such-program-anywhere"}));
}

TEST_F(Program, IsKilledWithTheProcessThatStartedIt) {
  const std::string file = (folder_ / "pid").string();
  const pid_t middle = fork_child();
  if (middle == 0) {
    const auto child = start_program({"sleep", "60"});
    std::ofstream(file) << *child << std::flush;
    ::raise(SIGKILL);
  }
  EXPECT_EQ(how_it_ended(status_of(middle)), "was ended by signal 9 (Killed)");
  pid_t child = 0;
  std::ifstream(file) >> child;
  ASSERT_GT(child, 0);
  // Nobody waits for it here: it is gone, or is a zombie of whoever inherits it.
  const auto lives = [child] {
    std::ifstream status("/proc/" + std::to_string(child) + "/stat");
    std::string number, name, state;
    return static_cast<bool>(status >> number >> name >> state) && state != "Z";
  };
  for (int i = 0; i < 100 && lives(); ++i) ::usleep(20000);
  EXPECT_FALSE(lives());
}

TEST(OwnFault, IsABadAccessAndNoSignalOfOthers) {
  const auto status_by = [](int signal) {
    const pid_t child = fork_child();
    if (child == 0) {
      ::signal(signal, SIG_DFL);
      ::raise(signal);
      ::_exit(0);
    }
    return status_of(child);
  };
  EXPECT_FALSE(is_own_fault(status_by(SIGKILL)));
  EXPECT_FALSE(is_own_fault(status_by(SIGTERM)));
  EXPECT_TRUE(is_own_fault(status_by(SIGABRT)));
  EXPECT_FALSE(is_own_fault(0));
}

TEST(SystemRefusal, NamesTheLimit) {
  try {
    refuse_by_system("cannot start a process", EAGAIN);
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "cannot start a process: Resource temporarily unavailable (ulimit -u)");
  }
}

}  // namespace
}  // namespace pipesim::child_process_test
