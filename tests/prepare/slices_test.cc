// The slices that `splits: optimal` stands for.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

#include "sim/case/simulate.h"
#include "sim/case/unequal_units.h"
#include "sim/core/error.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"

namespace pipesim::slices_test {
namespace {

const std::string kModelled = R"(
model: llama3-8b
cluster: dgx-h100
parallel: {pipeline_model_parallel_size: 8, tensor_model_parallel_size: 8, sequence_parallel: true}
batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 128k}
)";

Case sliced(const std::string& splits, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all{fmt::format("schedule={{name: seq-1f1b, splits: {}}}", splits)};
  all.insert(all.end(), more.begin(), more.end());
  std::vector<Override> parsed;
  for (const auto& each : all) parsed.push_back(parse_override(each, {"", 1, 1, ""}));
  return prepare_first(read_scenario(YamlSource("s.yaml", kModelled, parsed)));
}

Seconds iteration_of(const std::string& splits, const std::vector<std::string>& more = {}) {
  return simulate(sliced(splits, more)).report.iteration;
}

TEST(OptimalSlices, AreLongestFirstAndFasterThanEqualOnes) {
  const Case made = sliced("optimal");
  const std::vector<long>& slices = made.choice.slices;
  EXPECT_EQ(std::accumulate(slices.begin(), slices.end(), 0L), 32);
  EXPECT_EQ(made.problem.shape.splits, static_cast<int>(slices.size()));
  EXPECT_GT(slices.front(), slices.back());
  const Seconds best = simulate(made).report.iteration;
  for (const int splits : {1, 2, 4, 8, 16, 32}) {
    EXPECT_LT(best, iteration_of(fmt::format("{}", splits))) << splits;
  }
}

// Tries every way to cut eight parts: stages differ, messages take time, and the order is not
// TeraPipe's, which the programme plans for.
TEST(OptimalSlices, AreWithinTwoPercentOfAnyOthers) {
  const std::string few = "batch.num_microbatches=2";
  const Seconds best = iteration_of("{optimal: 8}", {few});
  for (unsigned cuts = 0; cuts < 1U << 7U; ++cuts) {
    std::vector<int> lengths{1};
    for (unsigned part = 0; part < 7; ++part) {
      if ((cuts >> part) & 1U) {
        lengths.push_back(1);
      } else {
        ++lengths.back();
      }
    }
    const std::string splits = fmt::format("[{}]", fmt::join(lengths, ", "));
    EXPECT_LE(best.value(), 1.02 * iteration_of(splits, {few}).value()) << splits;
  }
}

Case equal(const std::string& splits, const std::vector<std::string>& more = {}) {
  std::vector<Override> parsed;
  for (const auto& each : more) parsed.push_back(parse_override(each, {"", 1, 1, ""}));
  parsed.push_back(parse_override("schedule.splits=" + splits, {"", 1, 1, ""}));
  return prepare_first(read_scenario(YamlSource("s.yaml", R"(
schedule: {name: seq-1f1b}
parallel: {pipeline_model_parallel_size: 2}
batch: {num_microbatches: 2, micro_batch_size: 1, seq_length: 1000}
cost: {kind: given, forward: 10 ms, backward_input: 20 ms, backward_weight: 10 ms}
)",
                                                parsed)));
}

// With attention alone the first x of a sequence take x^2 of it.
TEST(EqualSlices, TakeTheirShareOfGivenSeconds) {
  const Case made = equal("{equal_flops: 2}", {"cost.attention_share=1"});
  EXPECT_EQ(made.choice.slices, (std::vector<long>{708, 292}));
  EXPECT_EQ(equal("{equal_flops: 4}").choice.slices, (std::vector<long>{250, 250, 250, 250}));
  EXPECT_EQ(equal("{equal_flops: 3, multiple_of: 10}").choice.slices,
            (std::vector<long>{340, 330, 330}));
  EXPECT_EQ(made.problem.shape.splits, 2);
}

TEST(EqualSlices, LeaveOutWhatEverySliceTakes) {
  const Case made = equal("{equal_flops: 2}", {"cost.attention_share=0.5",
                                               "cost.fixed={forward: 5 ms, "
                                               "backward_input: 10 ms}"});
  EXPECT_EQ(made.choice.slices, (std::vector<long>{708, 292}));
}

TEST(EqualSlices, TakeAsManyFlopsOfAModel) {
  const std::vector<long> slices = sliced("{equal_flops: 4}").choice.slices;
  EXPECT_EQ(std::accumulate(slices.begin(), slices.end(), 0L), 128 * 1024);
  for (size_t i = 0; i < slices.size(); ++i) {
    EXPECT_EQ(slices[i] % 8, 0) << "ranks divide it";
    if (i > 0) {
      EXPECT_LT(slices[i], slices[i - 1]);
    }
  }
  const Case made = sliced("{equal_flops: 4}");
  const double all = forward_work(made, {0, 128 * 1024, 128 * 1024});
  long begin = 0;
  for (const long length : slices) {
    const double one = forward_work(made, {begin, begin + length, 128 * 1024});
    EXPECT_NEAR(one / all, 0.25, 2e-3) << begin;
    begin += length;
  }
  EXPECT_LT(forward_work(made, {0, 1, 4}) / all, 0.2) << "attends to less than the others";
}

TEST(EqualSlices, RefuseWhatCannotBeCut) {
  const auto refusal = [](const std::string& splits, const std::vector<std::string>& more) {
    try {
      (void)equal(splits, more);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal("{equal_flops: 2}", {"batch={num_microbatches: 2}"})
                .find("2 slices of equal FLOPs need batch.seq_length"),
            std::string::npos);
  EXPECT_NE(refusal("{equal_flops: 8}", {"batch.seq_length=4"}).find("leave one without tokens"),
            std::string::npos);
  EXPECT_THROW((void)sliced("{equal_flops: 4, multiple_of: 3}"), InputError);
}

TEST(OptimalSlices, RefusesPartsThatRanksCannotDivide) {
  EXPECT_THROW((void)sliced("{optimal: 128}", {"batch.seq_length=128"}), InputError);
}

}  // namespace
}  // namespace pipesim::slices_test
