// Reading a scenario simulates nothing: this executable is linked with the readers and what they
// stand on, so that a reader which called an engine would bring it along.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>

#include "sim/read/scenario.h"

namespace pipesim::reading_test {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(Reading, OfEveryScenarioOfTheTreeLoadsNoModuleAndCallsNoEngine) {
  int read = 0;
  for (const char* folder : {"/scenarios", "/tests/fuzz/seeds/scenario"}) {
    for (const auto& each :
         fs::recursive_directory_iterator(std::string(PIPESIM_SOURCE_DIR) + folder)) {
      if (each.path().extension() != ".yaml") continue;
      const std::string stem = each.path().stem();
      const bool sweep = bytes_of(each.path()).find("\nsweep:") != std::string::npos;
      if (sweep || stem == "malformed_tail" || stem.ends_with("_anchor")) continue;
      EXPECT_NO_THROW((void)read_scenario_file(each.path().string(), {})) << each.path();
      ++read;
    }
  }
  EXPECT_GE(read, 8);
  EXPECT_EQ(bytes_of("/proc/self/maps").find("simgrid"), std::string::npos);
  const std::string program = bytes_of("/proc/self/exe");
  ASSERT_NE(program.find("read_scenario_file"), std::string::npos) << "has no names of functions";
  // In two parts, as this text is a part of the program too.
  for (const std::string name : {"make_replay", "make_simgrid"}) {
    EXPECT_EQ(program.find(name + "_engine"), std::string::npos) << name;
  }
}

TEST(Reading, LeavesBalanceAndOffloadToBeFound) {
  const Scenario scenario = read_scenario(YamlSource("test", R"(
model: llama3-8b
cluster: dgx-h100
schedule: gis-h
parallel: {pipeline_model_parallel_size: 4, balance: auto}
batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}
offload: auto
)"));
  EXPECT_TRUE(asks_for_balance(scenario));
  ASSERT_TRUE(scenario.schedules.front().offload.has_value());
  EXPECT_TRUE(scenario.schedules.front().offload->automatic);
  EXPECT_FALSE(scenario.schedules.front().offload->chunks.has_value());
}

}  // namespace
}  // namespace pipesim::reading_test
