// Given costs of the slices of a sequence: causal attention, and what every slice takes in full.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "sim/case/simulate.h"
#include "tests/case/cases.h"

namespace pipesim::slice_cost_test {
namespace {

const std::string kSliced =
    "schedule: {name: seq-1f1b, splits: 2}\n"
    "parallel: {pipeline_model_parallel_size: 2}\n"
    "batch: {num_microbatches: 2}\n"
    "cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms}\n";

Problem problem_with(const Changes& changes) {
  return prepare_first(read_changed(kSliced, changes)).problem;
}

double milliseconds(Seconds seconds) { return 1e3 * seconds.value(); }

TEST(FixedCost, IsPaidByEverySlice) {
  const Changes fixed{{"cost.fixed", "{forward: 2 ms, backward_weight: 1 ms}"}};
  const Problem problem = problem_with(fixed);
  EXPECT_NEAR(milliseconds(problem.stage(0, 0).forward), 2 + 8 / 2., 1e-9);
  EXPECT_NEAR(milliseconds(problem.stage(1, 3).forward), 2 + 8 / 2., 1e-9);
  EXPECT_NEAR(milliseconds(problem.stage(0, 0).backward_input), 6, 1e-9);
  EXPECT_NEAR(milliseconds(problem.stage(0, 0).backward_weight), 1 + 7 / 2., 1e-9);
}

TEST(FixedCost, IsPartOfAWholeMicrobatch) {
  const Changes whole{{"schedule.splits", "1"}, {"cost.fixed", "{forward: 2 ms}"}};
  EXPECT_EQ(problem_with(whole).stage(0, 0).forward, Seconds(10e-3));
}

TEST(FixedCost, StaysBesideAttentionAndUnequalLengths) {
  const Problem problem = problem_with({{"schedule.splits", "[3, 1]"},
                                        {"cost.fixed", "{forward: 2 ms}"},
                                        {"cost.attention_share", "0.5"}});
  // 5 ms of attention, of which three quarters of a sequence take 9/16, and 3 ms that go by length.
  EXPECT_NEAR(milliseconds(problem.stage(0, 0).forward), 2 + 3 * 0.75 + 5 * 9 / 16., 1e-9);
  EXPECT_NEAR(milliseconds(problem.stage(0, 1).forward), 2 + 3 * 0.25 + 5 * 7 / 16., 1e-9);
}

TEST(FixedCost, IsMultipliedWithItsMicrobatch) {
  const Problem problem =
      problem_with({{"cost.fixed", "{forward: 2 ms}"}, {"batch.factors", "[1, 3]"}});
  EXPECT_NEAR(milliseconds(problem.stage(0, 0).forward), 6, 1e-9);
  EXPECT_NEAR(milliseconds(problem.stage(0, 2).forward), 18, 1e-9);
}

TEST(FixedCost, MakesOptimalSlicesFewer) {
  const auto slices = [](const Changes& changes) {
    return prepare_first(read_changed(kSliced, changes)).choice.slices.size();
  };
  const Changes chosen{{"schedule", "{name: terapipe, splits: {optimal: 16}}"}};
  Changes fixed = chosen;
  fixed.emplace_back("cost.fixed", "{forward: 4 ms, backward_input: 4 ms, backward_weight: 4 ms}");
  EXPECT_EQ(slices(chosen), 16U);
  EXPECT_LT(slices(fixed), 6U);
}

TEST(AttentionShare, IsOfEachPass) {
  const Problem problem =
      problem_with({{"cost.attention_share", "{forward: 0.2, backward_input: 0.5}"}});
  EXPECT_NEAR(milliseconds(problem.stage(0, 0).forward), 8 / 2. + 2 / 4., 1e-9);
  EXPECT_NEAR(milliseconds(problem.stage(0, 1).backward_input), 6 / 2. + 6 * 3 / 4., 1e-9);
}

// Each key as it is without it.
TEST(GivenCost, IsAsItWasWhereAnyKeyIsRestated) {
  const Seconds as_it_is = simulate(prepare_first(read_changed(kSliced, {}))).report.iteration;
  const std::vector<Changes> all{
      {{"cost.attention_share", "0"}},
      {{"cost.attention_share", "{forward: 0, backward_input: 0}"}},
      {{"cost.fixed", "{}"}},
      {{"cost.fixed", "{forward: 0, backward_input: 0, backward_weight: 0}"}},
      {{"cost.fixed", "{forward: [0, 0]}"}},
      {{"cost.recompute", "10 ms"}},
      {{"cost.transfer", "0"}},
      {{"cost.collective", "0"}},
      {{"cost.optimizer", "0"}},
      {{"cost.per", "device"}},
      {{"cost.forward", "[10 ms, 10 ms]"}},
      {{"schedule.splits", "[1, 1]"}},
      {{"batch.seq_length", "8k"}, {"schedule.splits", "{equal_flops: 2}"}},
      {{"batch.seq_length", "8k"}, {"schedule.splits", "{equal_flops: 2, multiple_of: 1}"}}};
  for (const Changes& each : all) {
    EXPECT_EQ(simulate(prepare_first(read_changed(kSliced, each))).report.iteration, as_it_is)
        << each.back().first << ": " << each.back().second;
  }
  const Changes attention{{"cost.attention_share", "0.4"}};
  const Changes restated{{"cost.attention_share", "{forward: 0.4, backward_input: 0.4}"}};
  EXPECT_EQ(simulate(prepare_first(read_changed(kSliced, attention))).report.iteration,
            simulate(prepare_first(read_changed(kSliced, restated))).report.iteration);
}

TEST(GivenCost, TakesOneSecondForEachCollectiveOfAVocabulary) {
  const std::string one =
      "schedule: 1f1b\nvocabulary: vocab-1\nparallel: {pipeline_model_parallel_size: 2}\n"
      "batch: {num_microbatches: 4}\n"
      "cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 8 ms, "
      "output_forward: 2 ms, output_backward: 2 ms, input_forward: 1 ms, input_backward: 1 ms, "
      "collective: 3 ms}\n";
  const auto iteration = [&one](const Changes& changes) {
    return simulate(prepare_first(read_changed(one, changes))).report.iteration;
  };
  const auto map = [](const std::string& softmax) {
    return Changes{{"cost.collective", "{embedding: 3 ms, output: 3 ms, softmax: " + softmax +
                                           ", output_gradient: 3 ms, embedding_gradient: 3 ms}"}};
  };
  EXPECT_EQ(iteration(map("3 ms")), iteration({}));
  EXPECT_GT(iteration(map("100 ms")), iteration({}));
  EXPECT_NE(
      refusal_of(one, {{"cost.collective", "{softmaxs: 3 ms}"}}).find("'embedding' is missing"),
      std::string::npos);
  EXPECT_NE(refusal_of(kSliced, {{"cost.collective", "{softmax: 3 ms}"}})
                .find("cost.collective: a map is of the collectives of a shared vocabulary"),
            std::string::npos);
}

struct Bad {
  Changes changes;
  const char* expected;
};

TEST(SliceCosts, AreRefusedWithTheirPlace) {
  const std::vector<Bad> all{
      {{{"cost.attention_share", "{forward: 0.2}"}}, "'backward_input' is missing"},
      {{{"cost.attention_share", "{forwards: 0.2}"}}, "'forward'"},
      {{{"cost.attention_share", "{forward: 0.2, backward_input: 1.2}"}}, "from 0 to 1"},
      {{{"cost.fixed", "{forwrad: 1 ms}"}}, "unknown key; did you mean 'forward'?"},
      {{{"cost.fixed", "{forward: 11 ms}"}}, "cost.fixed.forward: 11.000 ms is more than the "},
      {{{"cost.fixed", "{forward: 6 ms}"}, {"cost.attention_share", "0.5"}},
       "of its pass that are not attention"},
      {{{"cost.fixed", "{forward: [1 ms, 2 ms, 3 ms]}"}}, "one per device (2), not 3"},
      {{{"schedule.splits", "{equal_flop: 2}"}}, "did you mean 'equal_flops'?"},
      {{{"schedule.splits", "{equal_flops: 0}"}}, "from 1 to"},
      {{{"schedule.splits", "{equal_flops: 2, optimal: 8}"}},
       "optimal: stands beside 'equal_flops': give one of the two"},
      {{{"schedule.splits", "{equal_flops: 2, multiple: 2}"}}, "did you mean 'multiple_of'?"}};
  for (const Bad& each : all) {
    const std::string message = refusal_of(kSliced, each.changes);
    EXPECT_NE(message.find(each.expected), std::string::npos)
        << "got: " << message << "\nexpected: " << each.expected;
  }
}

}  // namespace
}  // namespace pipesim::slice_cost_test
