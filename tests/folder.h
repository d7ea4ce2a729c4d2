// A folder of files for each test. Tests of one program run as processes beside each other: a name
// that two of them share is a race.
#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <system_error>
#include <unistd.h>

namespace pipesim::testing {

// The folder of the test that runs, made when it is first asked for; no other test and no other
// process has it. It goes when the process ends.
inline std::filesystem::path test_folder() {
  class Root {
   public:
    Root()
        : path_(std::filesystem::path(::testing::TempDir()) / ("pipesim-" + std::to_string(pid_))) {
    }
    Root(const Root&) = delete;
    Root& operator=(const Root&) = delete;
    ~Root() {
      std::error_code ignored;
      if (getpid() == pid_) std::filesystem::remove_all(path_, ignored);  // not in a forked child
    }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

   private:
    pid_t pid_ = getpid();
    std::filesystem::path path_;
  };
  static const Root root;
  const auto* unit = ::testing::UnitTest::GetInstance();
  auto folder = root.path() / unit->current_test_suite()->name();
  // A suite that sets itself up for all of its tests runs none of them yet.
  if (const auto* test = unit->current_test_info(); test != nullptr) folder /= test->name();
  std::filesystem::create_directories(folder);
  return folder;
}

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}
[[nodiscard]] inline std::string read_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// A test that names its files by their names in its folder.
class Folder : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  void write(const std::string& name, const std::string& text) const {
    write_file(folder_ / name, text);
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    return read_file(folder_ / name);
  }

  const std::filesystem::path folder_ = test_folder();
};

}  // namespace pipesim::testing
