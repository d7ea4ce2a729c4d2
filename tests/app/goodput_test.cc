// pipesim goodput as a person meets it.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/app/command.h"

namespace pipesim::goodput_test {
namespace {

using testing::Outcome;
using GoodputCommand = testing::Command;

const std::string kScenario =
    "goodput " PIPESIM_SOURCE_DIR "/scenarios/llama3-70b-h100.yaml schedule=1f1b --runs 20 ";

TEST_F(GoodputCommand, PrintsTermsThatSumToTheWhole) {
  const Outcome outcome = run(kScenario + "--tokens 1T --json goodput.json --price-per-gpu-hour 2");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const char* words : {"1,000 billion tokens on 256 GPUs (32 nodes)", "Young", "lost work",
                            "in nine of ten runs", "price", "MWh", "80% band"}) {
    EXPECT_NE(outcome.output.find(words), std::string::npos) << words << "\n" << outcome.output;
  }
  const auto json = nlohmann::json::parse(read("goodput.json"))["goodput"][0];
  double sum = 0;
  for (const auto& [term, seconds] : json["mean_seconds_by_term"].items()) {
    sum += seconds.get<double>();
  }
  EXPECT_NEAR(sum, json["seconds"]["mean"].get<double>(), 1e-9 * sum);
  EXPECT_EQ(run(kScenario + "--tokens 1T --json again.json --price-per-gpu-hour 2").code, 0);
  EXPECT_EQ(read("goodput.json"), read("again.json"));
}

TEST_F(GoodputCommand, NamesWhatIsWrong) {
  EXPECT_EQ(run(kScenario).code, 2);
  EXPECT_EQ(run(kScenario + "--tokens many").code, 2);
  const Outcome outcome = run(kScenario + "--tokens 1T reliability.repare='1 d'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.output.find("did you mean 'repair'?"), std::string::npos) << outcome.output;
  EXPECT_EQ(run("goodput " PIPESIM_SOURCE_DIR "/scenarios/quickstart.yaml --tokens 1T").code, 2);
}

// Each would take hours; the second by its failures.
TEST_F(GoodputCommand, RefusesMoreStepsThanItMayTake) {
  for (const char* more :
       {"--tokens 1000000T", "--tokens 15T reliability.checkpoint.interval='1 us'",
        "--tokens 15T reliability.failures_per_1000_node_days=1e6",
        "--tokens 1T --max-steps 100"}) {
    const Outcome outcome = run(kScenario + more);
    EXPECT_EQ(outcome.code, 1) << more << outcome.output;
    EXPECT_NE(outcome.output.find("checkpoints and failures in "), std::string::npos)
        << more << outcome.output;
  }
}

}  // namespace
}  // namespace pipesim::goodput_test
