// The slices that `splits: optimal` stands for.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

#include "sim/case/simulate.h"
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

TEST(OptimalSlices, RefusesPartsThatRanksCannotDivide) {
  EXPECT_THROW((void)sliced("{optimal: 128}", {"batch.seq_length=128"}), InputError);
}

}  // namespace
}  // namespace pipesim::slices_test
