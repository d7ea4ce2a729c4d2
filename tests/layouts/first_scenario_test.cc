#include "sim/layouts/first_scenario.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sstream>

#include "sim/case/simulate.h"
#include "sim/core/data_folder.h"
#include "sim/layouts/question.h"
#include "sim/prepare/prepare.h"
#include "sim/read/hardware.h"
#include "sim/read/model.h"
#include "sim/read/scenario.h"

namespace pipesim::first_scenario_test {
namespace {

const Location kAsked{"command line", 1, 1, ""};

const Hardware& hardware(const std::string& name) {
  static const HardwareCatalog kCatalog = read_hardware_folder(data_folder("catalog"), kAsked);
  for (const ClusterEntry& each : kCatalog.clusters) {
    if (each.hardware.name == name) return each.hardware;
  }
  throw LogicError("no such cluster");
}

ClusterPlan plan_of(const std::string& model) {
  const Hardware& on = hardware("dgx-h100");
  const Transformer shape = find_model(model, kAsked);
  ClusterPlan found = read_plan_question(
      {{"model", model, kAsked},
       {"cluster", on.name, kAsked},
       {"batch.seq_length", fmt::format("{}", first_seq_length(shape)), kAsked}});
  found.question.gpus = fewest_gpus(shape, on);
  found.question.global_batch = 64;
  found.question.axes.schedules = {"1f1b", "zb"};
  found.result = plan(found.question, {.best = 1});
  return found;
}

TEST(FirstScenario, TakesNodesWithTwiceTheMemoryOfTheStates) {
  const auto gpus = [](const std::string& model) {
    return fewest_gpus(find_model(model, kAsked), hardware("dgx-h100"));
  };
  EXPECT_EQ(gpus("llama3-8b"), 8);
  EXPECT_EQ(gpus("llama3-70b"), 32);
  EXPECT_EQ(gpus("llama3.1-405b"), 256);
}

TEST(FirstScenario, KeepsWithinLearnedPositions) {
  EXPECT_EQ(first_seq_length(find_model("llama3-8b", kAsked)), 4096);
  EXPECT_EQ(first_seq_length(find_model("zb-1.5b", kAsked)), 1024);
}

TEST(FirstScenario, RunsAsItWasPlannedWithAWordAboutEverySection) {
  for (const char* model : {"llama2-13b", "mixtral-8x7b"}) {
    const ClusterPlan found = plan_of(model);
    ASSERT_FALSE(found.result.best.empty()) << model;
    const Planned& best = found.result.best.front();
    const std::string text = first_scenario(found, best);
    const Result result = simulate(prepare_first(read_scenario(YamlSource("first.yaml", text))));
    EXPECT_EQ(result.report.iteration, best.iteration) << text;
    EXPECT_EQ(*result.report.peak_memory, best.peak) << text;
    EXPECT_EQ(text.find(" B\n"), std::string::npos) << "bytes in\n" << text;
    bool described = false;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("#")) described = true;
      if (line.empty()) described = false;
      const bool section = !line.empty() && line.front() != '#' && line.front() != ' ';
      EXPECT_TRUE(described || !section) << line;
    }
  }
}

// Its comments ask for other schedules, whose stages are others.
TEST(FirstScenario, RunsWithSchedulesOfOtherStages) {
  ClusterPlan found = plan_of("llama3-70b");
  found.question.axes.schedules = {"interleaved-1f1b"};
  found.question.axes.tensor = {4};
  found.question.axes.pipeline = {4};
  found.question.axes.chunks = {7};
  found.question.axes.splits = {PlanSplit::kBalanced};
  found.question.axes.offload = {false};
  found.question.gpus = 64;
  found.result = plan(found.question, {.best = 1});
  ASSERT_FALSE(found.result.best.empty());
  const Planned& best = found.result.best.front();
  const std::string text = first_scenario(found, best);
  const auto seconds = [&text](const std::string& schedule) {
    const std::vector<Override> asked{{"schedule", schedule, kAsked}};
    const YamlSource source("first.yaml", text, schedule.empty() ? std::vector<Override>() : asked);
    return simulate(prepare_first(read_scenario(source))).report.iteration;
  };
  EXPECT_EQ(seconds(""), best.iteration) << text;
  for (const char* schedule : {"1f1b", "zb-h1", "zb-v"}) {
    EXPECT_GT(seconds(schedule), Seconds(0)) << schedule;
  }
}

}  // namespace
}  // namespace pipesim::first_scenario_test
