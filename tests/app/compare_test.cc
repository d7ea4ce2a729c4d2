// pipesim compare: what it takes as two orders, and what it refuses.
#include <gtest/gtest.h>

#include "tests/app/command.h"

namespace pipesim::compare_test {
namespace {

using testing::Outcome;

class Compare : public testing::Command {};

bool says(const Outcome& outcome, const std::string& what) {
  return outcome.output.find(what) != std::string::npos;
}

TEST_F(Compare, TakesTwoNamesAScenarioAndACsvOrTwoScenarios) {
  const Outcome names = run("compare " + quickstart_ + " 1f1b zb-h1");
  ASSERT_EQ(names.code, 0) << names.output;
  EXPECT_TRUE(says(names, "B takes 146.344 ms less than A (-10.05%).")) << names.output;
  EXPECT_TRUE(says(names, "They part first on device 7")) << names.output;

  ASSERT_EQ(run("export " + quickstart_ + " schedule=zb-h1 -o order.csv").code, 0);
  const Outcome csv = run("compare " + quickstart_ + " schedule=1f1b order.csv");
  ASSERT_EQ(csv.code, 0) << csv.output;
  EXPECT_TRUE(says(csv, "B takes 146.344 ms less than A (-10.05%).")) << csv.output;

  ASSERT_EQ(run("compare " + quickstart_ + " 'schedule=[1f1b, zb-h1]'").output, names.output);
  ASSERT_EQ(shell("cp " + quickstart_ + " other.yaml").code, 0);
  const Outcome two = run("compare " + quickstart_ + " other.yaml schedule=zb-h1");
  EXPECT_EQ(two.code, 0) << two.output;
  EXPECT_TRUE(says(two, "The orders are the same on every device.")) << two.output;
}

// Costs that are given have no band; modelled ones have, where the schedule alone differs.
TEST_F(Compare, SaysHowFarOffTheDifferenceMayBe) {
  EXPECT_FALSE(says(run("compare " + quickstart_ + " 1f1b zb-h1"), "measured pairs"));
  ASSERT_EQ(shell("printf 'model: llama3-8b\ncluster: dgx-h100\nschedule: [1f1b, zb-h1]\n"
                  "parallel: {pipeline_model_parallel_size: 4}\nbatch: {num_microbatches: 8, "
                  "micro_batch_size: 1, seq_length: 4096}\n' > modelled.yaml")
                .code,
            0);
  const Outcome two = run("compare modelled.yaml");
  ASSERT_EQ(two.code, 0) << two.output;
  EXPECT_TRUE(says(two, " measured pairs of schedules: B takes ")) << two.output;
  const Outcome equal = run("compare modelled.yaml modelled.yaml schedule=1f1b");
  EXPECT_TRUE(says(equal, "which does not tell them apart.")) << equal.output;
  const Outcome json = run("compare modelled.yaml --json -");
  EXPECT_TRUE(says(json, "\"b_over_a\"")) << json.output;
  ASSERT_EQ(shell("sed 's/llama3-8b/llama2-7b/' modelled.yaml > other.yaml").code, 0);
  const Outcome models = run("compare modelled.yaml other.yaml schedule=1f1b");
  EXPECT_FALSE(says(models, "measured pairs")) << models.output;
}

TEST_F(Compare, TellsASliceFromAMicrobatch) {
  const Outcome slices =
      run("compare " + quickstart_ + " 'schedule=[seq-1f1b, {name: seq-1f1b, splits: 2}]'");
  ASSERT_EQ(slices.code, 0) << slices.output;
  EXPECT_TRUE(says(
      slices, "at position 2 A runs 0F2, slice 2 of microbatch 0, B 0F2, slice 0 of microbatch 1."))
      << slices.output;
}

TEST_F(Compare, TakesDescriptions) {
  const std::string described = std::string(PIPESIM_SOURCE_DIR) + "/schedules/descriptions/";
  const Outcome same = run("compare " + quickstart_ + " 1f1b " + described + "1f1b.yaml");
  EXPECT_EQ(same.code, 0) << same.output;
  EXPECT_TRUE(says(same, "A and B take the same time.")) << same.output;
  const Outcome two =
      run("compare " + quickstart_ + " " + described + "v-half.yaml " + described + "v-min.yaml");
  EXPECT_EQ(two.code, 0) << two.output;
  EXPECT_TRUE(says(two, "v-min.yaml")) << two.output;
}

TEST_F(Compare, WritesEveryFormatTheSameTwice) {
  const std::string line = "compare " + quickstart_ + " 1f1b zb-v";
  const Outcome text = run(line + " --json one.json --svg one.svg --html one.html");
  ASSERT_EQ(text.code, 0) << text.output;
  for (const std::string format : {"json", "svg", "html"}) {
    EXPECT_EQ(run(line + " --" + format + " -").output, read("one." + format)) << format;
  }
  ASSERT_EQ(run(line + " -o one.text").code, 0);
  EXPECT_EQ(text.output, read("one.text"));
}

TEST_F(Compare, TakesTheOptionsOfTheReleaseBeforeWithAHint) {
  const std::string line = "compare " + quickstart_ + " 1f1b zb-v";
  const Outcome former = run(line + " --format json -o former.json");
  EXPECT_EQ(former.code, 0) << former.output;
  EXPECT_TRUE(says(former, "hint: instead of --format")) << former.output;
  EXPECT_EQ(read("former.json"), run(line + " --json -").output);
}

TEST_F(Compare, RefusesWhatIsNoPairOfOrders) {
  const auto refused = [this](const std::string& arguments, const std::string& why) {
    const Outcome outcome = run("compare " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(says(outcome, why)) << outcome.output;
  };
  refused(quickstart_ + " zb-hh 1f1b", "did you mean 'zb-h1'?");
  refused(quickstart_, "this scenario has 5");
  refused(quickstart_ + " 1f1b", "this scenario has gpipe, 1f1b, interleaved-1f1b, zb-h1, zb-h2");
  refused("order.csv 1f1b", "expected a scenario (.yaml)");
  refused(quickstart_ + " 1f1b nothere.csv", "cannot read 'nothere.csv'");
  refused(quickstart_ + " 1f1b zb-h1 zb-h2", "expected two scenarios, or one and two orders");
  refused(quickstart_ + " 1f1b zb-h1 --format pdf", "--format");
  write("short.yaml",
        "schedule: 1f1b\nparallel: {pipeline_model_parallel_size: 2}\nbatch: {num_microbatches: 4}"
        "\ncost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n");
  write("long.yaml",
        "schedule: 1f1b\nparallel: {pipeline_model_parallel_size: 3}\nbatch: {num_microbatches: 4}"
        "\ncost: {kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}\n");
  refused("short.yaml long.yaml", "1 pipelines of 2 devices, B 1 of 3");
  EXPECT_EQ(
      run("compare " + quickstart_ + " zb-v 'schedule={name: zb-v, memory_limit: 0.01}'").code, 1);
}

}  // namespace
}  // namespace pipesim::compare_test
