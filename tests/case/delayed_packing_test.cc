// Documents that wait for others as long: WLB-LLM's packing of a stream.
#include "sim/scenario/delayed_packing.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <random>

#include "sim/case/simulate.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/scenario/draw_batch.h"

namespace pipesim::delayed_packing_test {
namespace {

double square(int tokens) { return 1.0 * tokens * tokens; }

long sum_of(const std::vector<Documents>& packed) {
  long sum = 0;
  for (const Documents& each : packed) sum = std::accumulate(each.begin(), each.end(), sum);
  return sum;
}

TEST(DelayedPacking, WaitsForOneToEveryMicrobatch) {
  DelayedPacking stream(2, 10, 1.5, {8}, square);
  EXPECT_EQ(stream.next(Documents{9, 3, 3, 4, 1}), (std::vector<Documents>{{4, 1}, {3, 3}}));
  EXPECT_EQ(stream.waiting(), 9);
  EXPECT_EQ(stream.next(Documents{2, 8, 2, 8}), (std::vector<Documents>{{9}, {8, 2, 2}}));
  EXPECT_EQ(stream.waiting(), 8);
}

// Each threshold has a queue of its own: 5 waits for 6, not for 12.
TEST(DelayedPacking, HasAQueueForEveryThreshold) {
  DelayedPacking stream(2, 20, 1.5, {5, 10}, square);
  EXPECT_EQ(stream.next(Documents{12, 5, 4, 4}), (std::vector<Documents>{{4}, {4}}));
  EXPECT_EQ(stream.next(Documents{6, 1, 1}), (std::vector<Documents>{{5, 1, 1}, {6}}));
  EXPECT_EQ(stream.waiting(), 12);
}

TEST(DelayedPacking, KeepsWhatFindsNoRoomForTheNextBatch) {
  DelayedPacking stream(2, 10, 1, {9}, square);
  EXPECT_EQ(stream.next(Documents{7, 7, 6}), (std::vector<Documents>{{7}, {7}}));
  EXPECT_EQ(stream.waiting(), 6);
  EXPECT_EQ(stream.next(Documents{5, 1}), (std::vector<Documents>{{6}, {5, 1}}));
  EXPECT_EQ(stream.waiting(), 0);
}

TEST(DelayedPacking, LosesNothingAndKeepsWithinItsRoom) {
  std::mt19937 generator(3);
  std::uniform_int_distribution<int> length(1, 60);
  constexpr size_t kMicrobatches = 4;
  DelayedPacking stream(kMicrobatches, 100, 1.25, {40, 55}, square);
  std::map<int, int> come;
  std::map<int, int> gone;
  long tokens = 0;
  long packed_tokens = 0;
  for (int batch = 0; batch < 200; ++batch) {
    Documents documents;
    for (long sum = 0; sum < 400; sum += documents.back()) documents.push_back(length(generator));
    for (const int each : documents) ++come[each];
    tokens = std::accumulate(documents.begin(), documents.end(), tokens);
    const std::vector<Documents> packed = stream.next(documents);
    packed_tokens += sum_of(packed);
    ASSERT_EQ(packed.size(), kMicrobatches);
    for (const Documents& each : packed) {
      for (const int document : each) ++gone[document];
      // Every batch takes as many of each queue, and at most as many others as there is room for.
      const auto long_ones = [](const Documents& of, int from) {
        return std::ranges::count_if(of, [from](int document) { return document >= from; });
      };
      EXPECT_EQ(long_ones(each, 55), long_ones(packed.front(), 55));
      EXPECT_EQ(long_ones(each, 40), long_ones(packed.front(), 40));
      if (!each.empty() && each.back() < 40) {
        EXPECT_LE(std::accumulate(each.begin(), each.end(), 0), 125);
      }
    }
    ASSERT_EQ(packed_tokens + stream.waiting(), tokens) << "batch " << batch;
  }
  for (const auto& [document, count] : gone) EXPECT_LE(count, come[document]);
}

const std::string kModelled = R"(
schedule: zb-h1
model: llama3-8b
cluster: dgx-h100
parallel: {pipeline_model_parallel_size: 4, tensor_model_parallel_size: 2, sequence_parallel: true,
           context_parallel_size: 4}
batch:
  num_microbatches: 16
  micro_batch_size: 1
  seq_length: 64k
  lengths: {distribution: lognormal, mean: 8k, sigma: 1.5, seed: 7}
  packing: {name: balanced, outliers: [24k, 48k]}
)";

Scenario read(const std::vector<std::string>& overrides = {}) {
  std::vector<Override> parsed;
  for (const auto& each : overrides) parsed.push_back(parse_override(each, {"", 1, 1, ""}));
  return read_scenario(YamlSource("s.yaml", kModelled, parsed));
}

std::string refusal(const std::vector<std::string>& overrides) {
  try {
    (void)read(overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

// The draws of a scenario are the batches of a stream.
TEST(DelayedPacking, GoesOnFromDrawToDraw) {
  Scenario scenario = read();
  UnequalBatch alone = *scenario.batch.unequal;
  std::vector<long> tokens{sum_of(scenario.batch.unequal->documents)};
  for (const std::uint64_t seed : {8U, 9U, 10U, 11U, 12U, 13U, 14U}) {
    draw_batch(scenario, seed);
    tokens.push_back(sum_of(scenario.batch.unequal->documents));
  }
  // Long documents wait at first, and come together.
  constexpr long kBatch = 16 * 65536;
  EXPECT_LT(tokens.front(), kBatch);
  EXPECT_GT(*std::ranges::max_element(tokens), kBatch);
  const auto with_long = [&](const Documents& each) {
    return std::ranges::any_of(each, [](int document) { return document >= 48 * 1024; });
  };
  const auto count = std::ranges::count_if(scenario.batch.unequal->documents, with_long);
  EXPECT_TRUE(count == 0 || count == 16) << count;
  // A seed's draw does not depend on earlier draws.
  Scenario other = read();
  draw_batch(other, 14);
  EXPECT_EQ(other.batch.unequal->documents, scenario.batch.unequal->documents);
}

// Over a stream: MFU counts what is attended to.
TEST(DelayedPacking, IsFasterThanPackingBatchByBatch) {
  const auto mfu = [](const std::string& packing) {
    return *simulate(prepare_first(read({"batch.lengths.runs=24", "batch.packing=" + packing})))
                .throughput->mfu;
  };
  const double balanced = mfu("balanced");
  EXPECT_GT(mfu("{name: balanced, outliers: [24k, 48k]}"), balanced);
}

// Rates of an ensemble are of all its tokens by all its seconds.
TEST(DelayedPacking, CountsTokensBySecondsOfAllDraws) {
  const Result both = simulate(prepare_first(read({"batch.lengths.runs=2"})));
  double tokens = 0;
  for (const std::uint64_t seed : {7U, 8U}) {
    Scenario scenario = read();
    draw_batch(scenario, seed);
    tokens += static_cast<double>(sum_of(scenario.batch.unequal->documents));
  }
  EXPECT_NEAR(both.throughput->samples_per_second,
              tokens / 65536 / (2 * both.report.iteration.value()),
              1e-9 * both.throughput->samples_per_second);
}

TEST(DelayedPacking, SaysWhatItNeeds) {
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const auto refused = [&](const std::string& text, const std::string& part) {
    const std::string why = refusal({text});
    EXPECT_TRUE(has(why, part)) << why;
  };
  refused("batch.packing={name: greedy, outliers: [8k]}", "is of packing balanced");
  refused("batch.packing={name: balanced, outliers: []}", "at least one length");
  refused("batch.packing={name: balanced, outliers: [8k, 8k]}",
          "must be larger than the one before, 8192");
  refused("batch.packing={name: balanced, outlier: [8k]}", "did you mean 'outliers'?");
  const std::string empty = refusal({"batch.packing={name: balanced, outliers: [1k, 52k]}",
                                     "batch.lengths={distribution: uniform, min: 40k, max: 64k}"});
  EXPECT_TRUE(has(empty, "so many documents wait that a microbatch is empty")) << empty;
  refused("batch.lengths=[8192]", "wait for later batches");
}

}  // namespace
}  // namespace pipesim::delayed_packing_test
