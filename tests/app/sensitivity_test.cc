// pipesim sensitivity as its user meets it.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/app/command.h"

namespace pipesim::sensitivity_test {
namespace {

using testing::Command;
using testing::Outcome;

TEST_F(Command, SensitivityPrintsATablePerScheduleAndWritesDocuments) {
  const Outcome outcome = run("sensitivity " + quickstart_ +
                              " schedule='[1f1b, zb-h1]' --factor 0.5 --json s.json --csv s.csv");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("1f1b: iteration 1.457 s"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("zb-h1: iteration 1.310 s"), std::string::npos);
  const auto document = nlohmann::json::parse(read("s.json"));
  ASSERT_EQ(document["sensitivity"].size(), 2U);
  const auto& first = document["sensitivity"][0]["effects"][0];
  EXPECT_EQ(first["what"], "speed of the busiest device");
  EXPECT_EQ(first["factor"], 0.5);
  EXPECT_TRUE(first["outcome"]["peak_memory_bytes"].is_null());
  EXPECT_NE(read("s.csv").find("zb-h1,,none,none,,scenario,,1,1,,,1.3"), std::string::npos);
}

// Where stages differ, the bubble of the busiest device comes first.
TEST_F(Command, SensitivityAndSearchShowTheBubbleOfTheBusiest) {
  const std::string unequal =
      " schedule=1f1b parallel.pipeline_model_parallel_size=3 "
      "batch.num_microbatches=6 cost.forward='[10 ms, 10 ms, 30 ms]'";
  const Outcome sensitivity = run("sensitivity " + quickstart_ + unequal + " --csv s.csv");
  ASSERT_EQ(sensitivity.code, 0) << sensitivity.output;
  EXPECT_NE(sensitivity.output.find(", bubble of busiest "), std::string::npos)
      << sensitivity.output;
  EXPECT_NE(read("s.csv").find("bubble_rate,bubble_rate_busiest,"), std::string::npos);
  const Outcome search =
      run("search " + quickstart_ + unequal + " --memory-limit 1 --schedules 1f1b --no-refinement");
  ASSERT_EQ(search.code, 0) << search.output;
  EXPECT_NE(search.output.find("makespan  bubble of busiest   bubble "), std::string::npos)
      << search.output;
  const Outcome equal =
      run("search " + quickstart_ + " schedule=1f1b --memory-limit 1 --schedules gpipe,1f1b");
  EXPECT_EQ(equal.output.find("busiest"), std::string::npos) << equal.output;
}

TEST_F(Command, SensitivityRefusesFactorsThatAreNone) {
  for (const char* factors : {"0", "two", "0.5,,2", "-1", "1e9"}) {
    const Outcome outcome =
        run("sensitivity " + quickstart_ + " --factor=" + factors + " --json s.json");
    EXPECT_EQ(outcome.code, 2) << factors;
    EXPECT_NE(outcome.output.find("expected factors from 0.001 to 1000"), std::string::npos)
        << outcome.output;
    EXPECT_EQ(files(), 0U);
  }
}

}  // namespace
}  // namespace pipesim::sensitivity_test
