// Runs the built command in a folder of its own.
#pragma once

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <sys/wait.h>

namespace pipesim::testing {

struct Outcome {
  int code = -1;
  std::string output;  // both streams
};

class Command : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(::testing::TempDir()) /
        ("pipesim-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] Outcome run(const std::string& arguments) const {
    return shell(std::string(PIPESIM_EXECUTABLE) + " " + arguments);
  }
  // Any command line, in the folder.
  [[nodiscard]] Outcome shell(const std::string& line) const {
    const std::string command = "cd '" + folder_.string() + "' && { " + line + "; } 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    Outcome outcome;
    std::array<char, 4096> buffer{};
    while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
      outcome.output.append(buffer.data(), got);
    }
    const int status = pclose(pipe);
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }
  [[nodiscard]] size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                             std::filesystem::directory_iterator()));
  }

  const std::string quickstart_ = std::string(PIPESIM_SOURCE_DIR) + "/scenarios/quickstart.yaml";
  std::filesystem::path folder_;
};

}  // namespace pipesim::testing
