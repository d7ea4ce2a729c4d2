// `balance: auto` against all splits, and what it says where none fits.
#include "sim/prepare/balance.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/case/cases.h"

namespace pipesim {
namespace {

// Logits of three layers' time or so; early stages hold more microbatches.
constexpr const char* kBase = R"(
model: {family: llama, num_layers: 7, hidden_size: 2048, num_attention_heads: 16,
        ffn_hidden_size: 5632, vocab_size: 64000}
cluster: dgx-a100
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 4, balance: auto}
batch: {num_microbatches: 8, micro_batch_size: 2, seq_length: 4096}
memory: {kind: model}
)";

Scenario read(const std::vector<std::string>& overrides = {}) {
  std::vector<Override> all;
  for (const auto& each : overrides)
    all.push_back(parse_override(each, {"command line", 1, 1, ""}));
  return read_scenario(YamlSource("test", kBase, all));
}

struct Outcome {
  long empty = 0;  // stages
  Seconds iteration;
  Bytes peak;

  [[nodiscard]] bool is_better_than(const Outcome& other) const {
    return empty < other.empty || (empty == other.empty && iteration < other.iteration);
  }
};

Outcome outcome_of(const Scenario& scenario) {
  const Case made = prepare_first(scenario);
  const Result result = simulate(made);
  Outcome outcome;
  outcome.empty = std::ranges::count_if(made.layout->stages, [](const StageLayers& stage) {
    return stage.layers == 0 && !stage.embedding && !stage.output;
  });
  outcome.iteration = result.report.iteration;
  for (const DeviceReport& device : result.report.devices) {
    outcome.peak = std::max(outcome.peak, *device.peak_memory());
  }
  return outcome;
}

// Every list of layers per stage, embedding first and output last.
std::vector<Outcome> all_splits(const std::vector<std::string>& overrides, int devices,
                                int stages) {
  std::vector<Outcome> outcomes;
  std::vector<int> list(stages, 0);
  const auto visit = [&](auto&& self, size_t stage, int left) -> void {
    if (stage + 1 < list.size()) {
      for (int layers = 0; layers <= left; ++layers) {
        list[stage] = layers;
        self(self, stage + 1, left - layers);
      }
      return;
    }
    list[stage] = left;
    auto listed = overrides;
    listed.push_back(
        fmt::format("parallel={{pipeline_model_parallel_size: {}, num_layers_per_stage: [{}]}}",
                    devices, fmt::join(list, ", ")));
    outcomes.push_back(outcome_of(read(listed)));
  };
  visit(visit, 0, 7);
  return outcomes;
}

// Of limits from that of the least split to that of all, those within which a faster one is missed.
int missed(const std::vector<std::string>& overrides, int devices = 4) {
  const auto all = all_splits(overrides, devices, 4);
  EXPECT_EQ(all.size(), 120U);
  int count = 0;
  std::vector<double> peaks;
  for (const Outcome& each : all) peaks.push_back(each.peak.value());
  std::ranges::sort(peaks);
  for (const size_t fitting : {0UL, 3UL, 11UL, 40UL, 119UL}) {
    const Bytes capacity(peaks[fitting]);
    Outcome best{99, Seconds(1e9), capacity};
    for (const Outcome& each : all) {
      if (each.peak <= capacity && each.is_better_than(best)) best = each;
    }
    auto limited = overrides;
    limited.push_back(
        fmt::format("parallel={{pipeline_model_parallel_size: {}, balance: auto}}", devices));
    limited.push_back(fmt::format("memory.capacity={} B", capacity.value() + 1));
    const Outcome found = outcome_of(read(limited));
    EXPECT_LE(found.peak.value(), capacity.value() + 1);
    EXPECT_EQ(found.empty, best.empty) << fitting;
    if (found.iteration > (1 + 1e-8) * best.iteration) ++count;
  }
  return count;
}

TEST(BalanceAuto, IsTheFastestOfAllSplitsThatFit) { EXPECT_EQ(missed({}), 0); }
TEST(BalanceAuto, IsSoForOtherSchedulesAndUnderRecompute) {
  EXPECT_EQ(missed({"schedule=zb-h1"}), 0);
  EXPECT_EQ(missed({"schedule=gpipe", "recompute=full"}), 0);
}

constexpr const char* kInterleaved =
    "schedule={name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 2}";

// One layer at a time does not lead from every split to the best: one limit of five is missed.
TEST(BalanceAuto, SeldomMissesAFasterSplitWithSeveralChunks) {
  EXPECT_LE(missed({kInterleaved}, 2), 1);
}

constexpr const char* kFourChunks =
    "{name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 4}";

// Logits of four layers' time: the least slowest stage left others empty, and chunks uneven.
TEST(BalanceAuto, IsNeverSlowerThanAnEvenSplitNorLeavesAStageEmptyThatNeedNotBe) {
  for (const char* schedule : {"1f1b", "zb-1p", "zb-v", "v-half", "dualpipev", kFourChunks}) {
    const std::vector<std::string> wide{fmt::format("schedule={}", schedule), "model.num_layers=16",
                                        "model.vocab_size=128256"};
    auto evenly = wide;
    evenly.emplace_back("parallel={pipeline_model_parallel_size: 4}");
    const Outcome even = outcome_of(read(evenly));
    const Outcome found = outcome_of(read(wide));
    EXPECT_EQ(even.empty, 0) << schedule;
    EXPECT_EQ(found.empty, 0) << schedule;
    EXPECT_LE(found.iteration, even.iteration) << schedule;
  }
}

// An embedding on a later stage would be no layout of Megatron's, and none that is read back.
TEST(BalanceAuto, LeavesTheEmbeddingOnTheFirstStageWhereStagesAreEmpty) {
  for (const char* schedule : {"schedule=1f1b", "schedule=v-half", "schedule=zb-v", kInterleaved}) {
    const Scenario scenario = read({schedule, "model.num_layers=5"});
    const Layout layout = *prepare_first(scenario).layout;
    EXPECT_TRUE(layout.stages.front().embedding) << schedule;
    EXPECT_TRUE(layout.stages.back().output) << schedule;
    const std::string text = to_megatron_layout(layout);
    EXPECT_EQ(parse_megatron_layout(scenario.modelled->model, text), layout) << text;
  }
}

TEST(BalanceAuto, WeighsSecondsAndNotFlops) {
  const Scenario scenario = read();
  const LayerSeconds weights = layer_weights(prepare_first(scenario));
  EXPECT_GT(weights.embedding, Seconds(0)) << "no FLOPs, but bytes to move";
  const Scenario again = read({"recompute=full"});
  EXPECT_GT(layer_weights(prepare_first(again)).dense, weights.dense);
  EXPECT_EQ(layer_weights(prepare_first(again)).output, weights.output);
}

TEST(BalanceAuto, NamesTheNearestChangeWhereNothingFits) {
  try {
    const Scenario scenario = read({"memory.capacity=7 GiB"});
    (void)prepare_first(scenario);
    FAIL() << "fits";
  } catch (const InfeasibleError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("no split of model's layers over 4 stages was found that fits in 7.00 GiB"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("nearest change: micro_batch_size 1 ("), std::string::npos) << text;
  }
}

TEST(BalanceAuto, LeavesTheOtherSchedulesOfAListWhereOneHasNoSplitThatFits) {
  const Scenario scenario = read({"schedule=[gpipe, 1f1b]", "memory.capacity=10 GiB"});
  ASSERT_EQ(scenario.schedules.size(), 2U);
  EXPECT_THROW((void)case_of(scenario, scenario.schedules[0]), InfeasibleError);
  EXPECT_EQ(case_of(scenario, scenario.schedules[1]).layout,
            prepare_first(read({"memory.capacity=10 GiB"})).layout);
}

// What orders by seconds and bytes may miss a faster split, but what is found fits.
TEST(BalanceAuto, FitsWhereTheOrderFollowsTheSplitToo) {
  for (const char* schedule : {"schedule=v-half", "schedule=zb-v"}) {
    const std::string layers = "model.num_layers=24";
    const Outcome free = outcome_of(read({schedule, layers}));
    const double most = 0.95 * free.peak.value();
    const Outcome tight =
        outcome_of(read({schedule, layers, fmt::format("memory.capacity={} B", most)}));
    EXPECT_LE(tight.peak.value(), most) << schedule;
  }
}

}  // namespace
}  // namespace pipesim
