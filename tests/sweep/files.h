// A small sweep, and a folder for its results.
#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

namespace pipesim::testing {

// 2 x 3 settings, two schedules; interleaving refuses 3 microbatches on 2 devices.
inline const std::string kSmallSweep =
    R"(schedule: [1f1b, {name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 2}]
parallel: {pipeline_model_parallel_size: 2}
batch: {num_microbatches: 4, micro_batch_size: 1}
cost: {kind: given, forward: 10 ms, backward_input: 10 ms, backward_weight: 10 ms}
sweep:
  grid:
    cost.forward: [10 ms, 12.5 ms]
    batch.num_microbatches: [2, 3, 4]
)";

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("pipesim-") + test->test_suite_name() + "-" + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name, std::ios::binary).rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
};

}  // namespace pipesim::testing
