// Runs the built command in a folder of its own.
#pragma once

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <sys/wait.h>

#include "tests/folder.h"

namespace pipesim::testing {

struct Outcome {
  int code = -1;
  std::string output;  // both streams
};

class Command : public Folder {
 protected:
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
  [[nodiscard]] size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                             std::filesystem::directory_iterator()));
  }

  const std::string quickstart_ = std::string(PIPESIM_SOURCE_DIR) + "/scenarios/quickstart.yaml";
};

}  // namespace pipesim::testing
