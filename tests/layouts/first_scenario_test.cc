#include "sim/layouts/first_scenario.h"

#include <gtest/gtest.h>

#include "sim/core/data_folder.h"
#include "sim/read/hardware.h"
#include "sim/read/model.h"
#include "sim/read/scenario.h"
#include "tests/sanitized.h"

namespace pipesim::first_scenario_test {
namespace {

const Location kAsked{"command line", 1, 1, ""};

const HardwareCatalog& catalog() {
  static const HardwareCatalog kCatalog = read_hardware_folder(data_folder("catalog"), kAsked);
  return kCatalog;
}

const Hardware& hardware(const std::string& name) {
  for (const ClusterEntry& each : catalog().clusters) {
    if (each.hardware.name == name) return each.hardware;
  }
  throw LogicError("no such cluster");
}

std::string text_of(const std::string& model, std::optional<int> gpus = std::nullopt) {
  const Transformer shape = find_model(model, kAsked);
  const Hardware& on = hardware("dgx-h100");
  return first_scenario(shape, on, first_sizes(shape, on, gpus, kAsked));
}

TEST(FirstScenario, TakesTheFewestGpusOfWhichHalfHoldsTheStates) {
  const auto sizes = [](const std::string& model, std::optional<int> gpus = std::nullopt) {
    const FirstSizes found =
        first_sizes(find_model(model, kAsked), hardware("dgx-h100"), gpus, kAsked);
    return std::vector<int>{found.tensor, found.pipeline, found.data};
  };
  EXPECT_EQ(sizes("llama3-70b"), (std::vector{8, 4, 1}));
  EXPECT_EQ(sizes("llama3-70b", 256), (std::vector{8, 4, 8}));
  EXPECT_EQ(sizes("llama3-70b", 16), (std::vector{4, 4, 1}));  // too few: they run all the same
  EXPECT_EQ(sizes("llama3-8b", 4), (std::vector{1, 4, 1}));
  EXPECT_EQ(sizes("llama3-8b", 6), (std::vector{1, 2, 3}));
  EXPECT_EQ(sizes("llama3.1-405b"), (std::vector{8, 16, 2}));
}

TEST(FirstScenario, RefusesAnOddNumberOfGpusWithTheNextOne) {
  try {
    text_of("llama3-8b", 7);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("the nearest: 8"), std::string::npos) << error.what();
  }
}

TEST(FirstScenario, IsReadForEveryModelOnEveryCluster) {
  for (const Transformer& model : testing::some(catalogue_models())) {
    for (const ClusterEntry& entry : catalog().clusters) {
      const FirstSizes sizes = first_sizes(model, entry.hardware, std::nullopt, kAsked);
      const std::string text = first_scenario(model, entry.hardware, sizes);
      EXPECT_NO_THROW(read_scenario({"first.yaml", text})) << text;
    }
  }
}

TEST(FirstScenario, SaysOfEverySectionWhatItIs) {
  const std::string text = text_of("deepseek-v3");
  bool described = false;
  size_t sections = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) described = true;
    if (line.empty()) described = false;
    if (line.empty() || line.front() == '#' || line.front() == ' ') continue;
    EXPECT_TRUE(described) << line;
    ++sections;
  }
  EXPECT_EQ(sections, 7U);
  EXPECT_LE(text.size(), 2000U);
}

}  // namespace
}  // namespace pipesim::first_scenario_test
