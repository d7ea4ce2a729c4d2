// The scenario's `vocabulary` section and its costs.
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::vocabulary_test {
namespace {

const std::string kText =
    "schedule: 1f1b\n"
    "parallel: {pipeline_model_parallel_size: 2}\n"
    "batch: {num_microbatches: 4}\n"
    "vocabulary: {placement: vocab-2}\n"
    "cost: {kind: given, forward: 10 s, backward_input: 10 s, backward_weight: 10 s,\n"
    "       output_forward: 4 s, output_backward: [6 s, 7 s], input_forward: 1 s,\n"
    "       input_backward: 1 s, collective: 2 s}\n"
    "memory: {kind: given, activation: 1 GiB, weight_stash: 0, output_activation: 3 GiB}\n";

Scenario read(const std::vector<std::string>& overrides = {}) {
  std::vector<Override> parsed;
  for (const auto& each : overrides) {
    parsed.push_back(parse_override(each, {"command line", 1, 1, ""}));
  }
  return read_scenario(YamlSource("s.yaml", kText, parsed));
}

std::string refusal(const std::vector<std::string>& overrides) {
  try {
    const Scenario scenario = read(overrides);
    (void)simulate(prepare_first(scenario));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(ScenarioVocabulary, ReachesTheProblemWithTheCostsOfEveryDevice) {
  const Scenario scenario = read();
  const Problem problem = prepare_first(scenario).problem;
  EXPECT_EQ(problem.vocabulary, VocabularyPlacement::kVocab2);
  ASSERT_EQ(problem.vocabulary_costs.size(), 2U);
  EXPECT_EQ(problem.vocabulary_costs[0].output_forward, Seconds(4));
  EXPECT_EQ(problem.vocabulary_costs[1].output_backward, Seconds(7));
  EXPECT_EQ(problem.vocabulary_costs[1].output_activation, Bytes(3 * 1073741824.0));
  EXPECT_EQ(problem.barriers[Barrier::kSoftmax], Seconds(2));
  EXPECT_EQ(problem.barriers[Barrier::kRendezvous], Seconds(0));
  EXPECT_EQ(scenario.sync, OptimizerSync::kNone) << "the collective is the vocabulary's";
}

TEST(ScenarioVocabulary, ChargesTheWaitForItsCollectives) {
  const Scenario scenario = read({"vocabulary=interlaced"});
  const Report report = simulate(prepare_first(scenario)).report;
  EXPECT_EQ(report.devices[0].busy, Seconds(4 * (30 + 4 + 6 + 1 + 1)));
  EXPECT_EQ(report.devices[1].busy, Seconds(4 * (30 + 4 + 7 + 1 + 1)));
  EXPECT_GT(report.devices[0].idle_by_cause[IdleCause::kCollective], Seconds(0));
}

TEST(ScenarioVocabulary, SaysWhatItCannotDo) {
  EXPECT_NE(refusal({"schedule=gpipe"}).find("no order for the passes of vocabulary"),
            std::string::npos);
  EXPECT_NE(refusal({"vocabulary=vocab-3"}).find("'vocab-3' is not known"), std::string::npos);
  EXPECT_NE(refusal({"vocabulary=first_last"}).find("output_forward"), std::string::npos);
  EXPECT_NE(refusal({"framework.transfers=blocking"}).find("must be overlapped"),
            std::string::npos);
  EXPECT_EQ(refusal({"vocabulary.placement=vocab-1"}), "");
}

}  // namespace
}  // namespace pipesim::vocabulary_test
