// Holds --help to the program: its examples run, and the man page and completion have every
// command.
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sstream>
#include <vector>

#include "tests/app/command.h"
#include "tests/sanitized.h"

namespace pipesim::help_test {
namespace {

namespace fs = std::filesystem;

class Help : public testing::Command {
 protected:
  Help() { fs::create_symlink(fs::path(PIPESIM_SOURCE_DIR) / "scenarios", folder_ / "scenarios"); }

  // The commands in the order of `pipesim --help`, where they stand in groups.
  [[nodiscard]] std::vector<std::string> commands() const {
    std::istringstream help(run("--help").output);
    std::vector<std::string> names;
    bool listed = false;
    for (std::string line; std::getline(help, line);) {
      if (line == "Ask:") listed = true;
      if (!listed || !line.starts_with("  ") || line[2] == ' ') continue;
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    return names;
  }

  // The lines below "Examples:", with which the help of a command ends.
  [[nodiscard]] std::vector<std::string> examples(const std::string& command) const {
    std::istringstream help(run(command + " --help").output);
    std::vector<std::string> lines;
    bool shown = false;
    for (std::string line; std::getline(help, line);) {
      if (shown && !line.empty()) lines.push_back(line.substr(line.find_first_not_of(' ')));
      if (line.starts_with("Examples:")) shown = true;
    }
    return lines;
  }
};

TEST_F(Help, EndsWithTwoExamplesThatRun) {
  if (testing::kSanitized) GTEST_SKIP() << "20 minutes; each command's own tests run there";
  ASSERT_GE(commands().size(), 15U);
  for (const std::string& command : commands()) {
    // They need CUDA, or Ctrl-C.
    if (command == "calibrate" || command == "serve") continue;
    const auto lines = examples(command);
    EXPECT_EQ(lines.size(), 2U) << command;
    for (const std::string& line : lines) {
      ASSERT_TRUE(line.starts_with("pipesim " + command)) << line;
      const testing::Outcome outcome = run(line.substr(std::string("pipesim ").size()));
      const bool lacks_matplotlib = outcome.output.find("with matplotlib") != std::string::npos;
      EXPECT_EQ(outcome.code, lacks_matplotlib ? 1 : 0) << line << '\n' << outcome.output;
    }
  }
}

TEST_F(Help, IsPrintedWithoutACommand) {
  const testing::Outcome alone = run("");
  EXPECT_EQ(alone.code, 0);
  EXPECT_EQ(alone.output, run("--help").output);
  for (const char* group : {"\nAsk:\n", "\nLook:\n", "\nExchange:\n", "\nTrust:\n"}) {
    EXPECT_NE(alone.output.find(group), std::string::npos) << group;
  }
}

TEST_F(Help, StaysWithin100Columns) {
  std::vector<std::string> all = commands();
  all.emplace_back();
  for (const std::string& command : all) {
    std::istringstream help(run(command + " --help").output);
    bool examples = false;  // command lines are as long as they are
    for (std::string line; std::getline(help, line);) {
      examples = examples || line == "Examples:";
      EXPECT_TRUE(examples || line.size() <= 100) << command << ": " << line;
    }
  }
}

// A common option is spelled and described alike by every command that has it.
TEST_F(Help, HasCommonOptionsInOneSpelling) {
  struct Common {
    const char* option;
    const char* spelled;
  };
  for (const std::string& command : commands()) {
    const std::string help = run(command + " --help").output;
    for (const Common& each : {Common{"-o", "  -o,--output "}, Common{"-j", "  -j,--threads "},
                               Common{"--json", "  --json TEXT "}, Common{"--csv", "  --csv TEXT "},
                               Common{"--html", "  --html TEXT "}}) {
      if (help.find(fmt::format("\n  {}", each.option)) == std::string::npos) continue;
      EXPECT_NE(help.find(fmt::format("\n{}", each.spelled)), std::string::npos)
          << command << ' ' << each.option << '\n'
          << help;
    }
  }
}

TEST_F(Help, IsWhatTheManPageAndCompletionHaveToo) {
  for (const std::string form : {"man", "bash", "zsh", "fish"}) {
    const testing::Outcome outcome = run("document " + form);
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    for (const std::string& command : commands()) {
      EXPECT_NE(outcome.output.find(command), std::string::npos) << form << ": " << command;
    }
    EXPECT_NE(outcome.output.find("memory"), std::string::npos) << form;
  }
  EXPECT_EQ(run("document pdf").code, 2);
}

TEST_F(Help, IsCompletedByBash) {
  const std::string script = "source <(" + std::string(PIPESIM_EXECUTABLE) +
                             " document bash); complete_word() { COMP_WORDS=(\"$@\"); "
                             "COMP_CWORD=$(($# - 1)); _pipesim; echo \"${COMPREPLY[@]}\"; }; ";
  const auto completed = [&](const std::string& words) {
    return shell("bash -c '" + script + "complete_word " + words + "'").output;
  };
  EXPECT_EQ(completed("pipesim sens"), "sensitivity\n");
  EXPECT_EQ(completed("pipesim show --cost"), "--costs\n");
  EXPECT_EQ(completed("pipesim show --format s"), "svg\n");
  EXPECT_EQ(completed("pipesim run scen"), "scenarios\n");
}

}  // namespace
}  // namespace pipesim::help_test
