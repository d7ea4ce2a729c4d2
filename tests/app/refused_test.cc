// Schedules of a comparison, or families of a search, that cannot be met.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/app/command.h"

namespace pipesim::refused_test {
namespace {

using testing::Outcome;

// gpipe holds all eight microbatches, which no split fits into 10 GiB.
constexpr const char* kRefusedScenario = R"(
model: {family: llama, num_layers: 7, hidden_size: 2048, num_attention_heads: 16,
        ffn_hidden_size: 5632, vocab_size: 64000}
cluster: dgx-a100
schedule: [gpipe, 1f1b]
parallel: {pipeline_model_parallel_size: 4, balance: auto}
batch: {num_microbatches: 8, micro_batch_size: 2, seq_length: 4096}
memory: {kind: model, capacity: 10 GiB}
)";

class RefusedSchedules : public testing::Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    write("s.yaml", kRefusedScenario);
  }
};

TEST_F(RefusedSchedules, RunSimulatesTheOthersAndSaysWhy) {
  const Outcome outcome = run("run s.yaml --json out.json");
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("gpipe: refused: no split of model's layers over 4 stages"),
            std::string::npos)
      << outcome.output;
  const auto document = nlohmann::json::parse(read("out.json"));
  ASSERT_EQ(document["results"].size(), 1U);
  EXPECT_EQ(document["results"][0]["schedule"], "1f1b");
  ASSERT_EQ(document["refused"].size(), 1U);
  EXPECT_EQ(document["refused"][0]["schedule"], "gpipe");

  const Outcome both = run("run s.yaml schedule=[gpipe,gpipe] --json none.json");
  EXPECT_EQ(both.code, 1);
  for (const char* line :
       {"no schedule can be met", "gpipe: refused: ", "gpipe (number 2): refused: "}) {
    EXPECT_NE(both.output.find(line), std::string::npos) << both.output;
  }
  const Outcome none = run("run s.yaml schedule=gpipe --json none.json");
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.output.find("no split of model's layers"), std::string::npos) << none.output;
  EXPECT_EQ(files(), 2U) << "the scenario and the first document";
}

TEST_F(RefusedSchedules, SensitivitiesAndPagesAreOfTheOthers) {
  const Outcome sensitivity = run("sensitivity s.yaml --csv out.csv");
  EXPECT_EQ(sensitivity.code, 1) << sensitivity.output;
  EXPECT_NE(sensitivity.output.find("gpipe: refused: no split"), std::string::npos)
      << sensitivity.output;
  EXPECT_NE(read("out.csv").find("\n1f1b,"), std::string::npos);
  EXPECT_EQ(read("out.csv").find("\ngpipe,"), std::string::npos);

  const Outcome report = run("report s.yaml -o page.html");
  EXPECT_EQ(report.code, 1);
  EXPECT_TRUE(report.output.starts_with("gpipe: refused: no split")) << report.output;
  EXPECT_NE(read("page.html").find("\"refused\":[{\"schedule\":\"gpipe\""), std::string::npos);
  EXPECT_EQ(run("report s.yaml schedule=gpipe -o none.html").code, 1);
  EXPECT_EQ(files(), 3U) << "the scenario, the table and the page";
}

TEST_F(RefusedSchedules, ShowShowsTheOthers) {
  for (const char* how : {"--costs", "--format text", "--format svg -o out.svg"}) {
    const Outcome outcome = run(std::string("show s.yaml ") + how);
    EXPECT_EQ(outcome.code, 1) << outcome.output;
    EXPECT_NE(outcome.output.find("gpipe: refused: no split"), std::string::npos) << outcome.output;
  }
  EXPECT_EQ(files(), 2U);
}

TEST_F(RefusedSchedules, SearchLeavesThemOutByName) {
  for (const char* schedule : {"", "schedule=gpipe"}) {
    const Outcome outcome =
        run(std::string("search s.yaml --schedules gpipe,1f1b --no-refinement ") + schedule);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("left out: gpipe: no split of model's layers over 4 stages"),
              std::string::npos)
        << outcome.output;
    EXPECT_EQ(outcome.output.find("gpipe: gpipe"), std::string::npos) << outcome.output;
  }
}

TEST_F(RefusedSchedules, SearchRefusesAFaultyDescriptionWhereItStands) {
  write("bad.yaml",
        "placement: linear\nparameters: {g: {usual: 1, from: 1, to: p}}\nperiod: 3\nblock:\n"
        "  - {pass: F, stage: s, at: s}\n  - {pass: BW, stage: s, at: 3*p - 5 - 2*s}\n");
  const Outcome outcome =
      run("search s.yaml schedule='{file: bad.yaml}' --schedules 1f1b,bad.yaml --no-refinement");
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("bad.yaml:6:30: "), std::string::npos) << outcome.output;
}

TEST_F(RefusedSchedules, SearchTakesNoLimitOfAFrontierNorPointsOfALimit) {
  const Outcome limited = run("search s.yaml --pareto --memory-limit 0.5");
  EXPECT_EQ(limited.code, 2);
  EXPECT_NE(limited.output.find("a frontier goes through all limits"), std::string::npos);
  const Outcome pointed = run("search s.yaml --points 3");
  EXPECT_EQ(pointed.code, 2);
  EXPECT_NE(pointed.output.find("expected --pareto beside --points"), std::string::npos);
}

// Advice tries other numbers of microbatches, but a list has its own.
TEST_F(RefusedSchedules, UnequalMicrobatchesThatDoNotFitAreRunAllTheSame) {
  const std::string encoder =
      "'model.encoder={num_layers: 8, hidden_size: 1024, num_attention_heads: 16, patches: 1024, "
      "patch_inputs: 588, merged_patches: 4}' 'batch.images=[1, 2, 3, 0, 1, 1, 4, 2, 1, 1, 1, 1, "
      "0, 0, 0, 1]'";
  const std::string factors =
      "'batch.factors=[1, 2, 1, 3, 1, 1, 1, 2]' 'cost={kind: given, forward: 10 ms, "
      "backward_input: 12 ms, backward_weight: 8 ms}'";
  for (const std::string& batch : {encoder, factors}) {
    const Outcome ran =
        run("run s.yaml schedule=1f1b model.num_layers=8 "
            "'parallel={pipeline_model_parallel_size: 4}' memory.capacity='2 GiB' " +
            batch);
    EXPECT_NE(ran.output.find("does not fit in 2.00 GiB; nearest change: "), std::string::npos)
        << ran.output;
  }
}

}  // namespace
}  // namespace pipesim::refused_test
