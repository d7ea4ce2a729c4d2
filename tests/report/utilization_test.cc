// A GPU that does more than it can: said on a line of its own, by every modelled scenario.
#include "sim/report/text/utilization.h"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>
#include <string>

#include "sim/case/throughput.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/report/text/band.h"
#include "sim/report/text/table.h"

namespace pipesim::utilization_test {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ImpossibleRate, IsNothingUpToAll) {
  EXPECT_EQ(impossible_rate("1f1b", 1, 0.9, 1e15), "");
  EXPECT_EQ(impossible_rate("1f1b", 19.69, 19, 1e15),
            "1f1b: an MFU of 1,969% is over 100%: 19,690 TFLOP/s a GPU exceeds the card's 1,000; "
            "the seconds are not of this model on this GPU\n");
  EXPECT_TRUE(has(impossible_rate("1f1b", 1.04, 0.6, 1e15), "computes half"));
}

TEST(ImpossibleRate, OfABandsEndIsSaid) {
  const Band band{.low = 0.9, .high = 1.2, .difference = 0.1, .rows = 12, .group = "g"};
  const auto text = [&band](double mfu, bool causal) {
    return range_text(band, {.iteration = Seconds(1), .mfu = mfu, .causal = causal});
  };
  EXPECT_TRUE(has(text(0.95, false), "MFU 79% to 110% (over 100%, which no GPU reaches)"));
  EXPECT_TRUE(has(text(0.5, true), "causal MFU 42% to 56%"));
  EXPECT_FALSE(has(text(0.89, false), "over 100%"));
}

template <class List>
const auto& pick(const List& list, std::mt19937_64& random) {
  return list[random() % list.size()];
}

std::string drawn(std::mt19937_64& random) {
  constexpr std::array kModels{"llama3-8b", "gpt3-175b", "mixtral-8x7b"};
  constexpr std::array kClusters{"dgx-h100", "dgx-a100", "hgx-b200"};
  constexpr std::array kLengths{1024, 8192, 65536, 1 << 20};
  constexpr std::array kCosts{
      "{}", "{kind: given, forward: 1 ms, backward_input: 1 ms, backward_weight: 1 ms}",
      "{kind: given, forward: 1 s, backward_input: 1 s, backward_weight: 1 s}"};
  constexpr std::array kStragglers{0.05, 0.5, 1.0, 2.0};
  constexpr std::array kPipelines{4, 8};
  constexpr std::array kTensors{1, 8};
  std::string text = fmt::format(
      "schedule: 1f1b\nmodel: {}\ncluster: {}\n"
      "parallel: {{pipeline_model_parallel_size: {}, tensor_model_parallel_size: {}, "
      "sequence_parallel: true}}\n"
      "batch: {{num_microbatches: 8, micro_batch_size: 1, seq_length: {}}}\n",
      pick(kModels, random), pick(kClusters, random), pick(kPipelines, random),
      pick(kTensors, random), pick(kLengths, random));
  const std::string cost = pick(kCosts, random);
  if (cost != "{}") text += "cost: " + cost + "\n";
  text += "perturb: {stragglers: [";
  const double factor = pick(kStragglers, random);
  for (int rank = 0; rank < 4; ++rank) {
    text += fmt::format("{}{{rank: {}, factor: {}}}", rank > 0 ? ", " : "", rank, factor);
  }
  return text + "]}\n";
}

TEST(Utilization, OverAllIsSaidByEveryModelledScenario) {
  std::mt19937_64 random(20261128);
  int over = 0;
  int causal = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string text = drawn(random);
    const auto scenario =
        std::make_shared<const Scenario>(read_scenario(YamlSource("s.yaml", text)));
    const Answer made = answer(prepare_first(*scenario));
    const std::string table = comparison_table(std::span(&made, 1));
    const Throughput& rate = *made.result.throughput;
    const bool shown = shows_causal(*rate.mfu, *rate.mfu_causal);
    const double printed = shown ? *rate.mfu_causal : *rate.mfu;
    const double end = scenario->band ? printed / scenario->band->low : printed;
    EXPECT_EQ(has(table, "exceeds the card's"), *rate.mfu > 1) << text << table;
    EXPECT_EQ(has(table, "over 100%"), *rate.mfu > 1 || (scenario->roofline && end > 1))
        << text << table;
    EXPECT_EQ(has(table, "MFU, causal"), shown) << text << table;
    over += *rate.mfu > 1 ? 1 : 0;
    causal += shown ? 1 : 0;
  }
  EXPECT_GT(over, 30);
  EXPECT_GT(causal, 30);
}

}  // namespace
}  // namespace pipesim::utilization_test
