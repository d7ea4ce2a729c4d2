// `balance: auto` against all splits, and what it says where none fits.
#include "sim/prepare/balance.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <initializer_list>
#include <optional>
#include <random>
#include <span>

#include "sim/case/make_case.h"
#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "tests/case/cases.h"
#include "tests/folder.h"
#include "tests/sanitized.h"

namespace pipesim::balance_test {
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

Outcome outcome_of(const Case& made, const Result& result) {
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

Outcome outcome_of(const Scenario& scenario) {
  const Case made = prepare_first(scenario);
  return outcome_of(made, simulate(made));
}

// Every list of layers per stage, embedding first and output last.
std::vector<Layout> all_layouts(const Transformer& model, int stages) {
  std::vector<Layout> layouts;
  std::vector<int> list(stages, 0);
  const auto visit = [&](auto&& self, size_t stage, int left) -> void {
    if (stage + 1 == list.size()) {
      list[stage] = left;
      layouts.push_back(listed_layout(model, list));
      return;
    }
    for (int layers = 0; layers <= left; ++layers) {
      list[stage] = layers;
      self(self, stage + 1, left - layers);
    }
  };
  visit(visit, 0, model.num_layers);
  return layouts;
}

std::vector<Outcome> all_splits(const Scenario& scenario) {
  const Outline outline =
      outline_of(std::make_shared<const Scenario>(scenario), scenario.schedules.front());
  std::vector<Case> cases;
  for (const Layout& layout :
       all_layouts(scenario.modelled->model, outline.placement.model_stages())) {
    cases.push_back(make_case(outline, &layout));
  }
  Reuse reuse;
  const std::vector<Simulated> all = simulate_all(cases, reuse);
  std::vector<Outcome> outcomes;
  for (size_t i = 0; i < all.size(); ++i) outcomes.push_back(outcome_of(cases[i], all[i].get()));
  return outcomes;
}

// Limits, from the least split's to that of all, within which a faster split is missed.
int missed(const std::vector<std::string>& overrides) {
  const auto all = all_splits(read(overrides));
  int count = 0;
  std::vector<double> peaks;
  for (const Outcome& each : all) peaks.push_back(each.peak.value());
  std::ranges::sort(peaks);
  for (const size_t fitting :
       {size_t{0}, all.size() / 40, all.size() / 10, all.size() / 3, all.size() - 1}) {
    const Bytes capacity(peaks[fitting]);
    Outcome best{99, Seconds(1e9), capacity};
    for (const Outcome& each : all) {
      if (each.peak <= capacity && each.is_better_than(best)) best = each;
    }
    auto limited = overrides;
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
constexpr const char* kTwoDevices = "parallel.pipeline_model_parallel_size=2";

TEST(BalanceAuto, IsSoWithSeveralChunks) { EXPECT_EQ(missed({kInterleaved, kTwoDevices}), 0); }

template <class T>
T drawn(std::mt19937& random, std::initializer_list<T> of) {
  return *(of.begin() + random() % of.size());
}

struct Drawn {
  const char* schedule;
  int most_devices;
  int layers;  // and up to two more
};
constexpr Drawn kFixedOrders[] = {
    {"1f1b", 4, 6},
    {"zb-h1", 4, 6},
    {"{name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 2}", 3, 4},
    {"1f1b-v", 3, 4}};
constexpr Drawn kPlanned[] = {
    {"zb-1p", 4, 6}, {"v-half", 3, 4}, {"zb-v", 3, 4}, {"{name: best, memory_limit: 0.75}", 2, 5}};

// A random model, shape and schedule, with stages of unequal seconds.
std::vector<std::string> drawn_scenario(std::mt19937& random, std::span<const Drawn> schedules) {
  const Drawn& of = schedules[random() % schedules.size()];
  const int devices = 2 + static_cast<int>(random() % (of.most_devices - 1));
  const int hidden = drawn(random, {1024, 2048, 4096});
  return {fmt::format("schedule={}", of.schedule),
          fmt::format("parallel.pipeline_model_parallel_size={}", devices),
          fmt::format("batch.num_microbatches={}", devices * (2 + random() % 3)),
          fmt::format("model.num_layers={}", of.layers + random() % 3),
          fmt::format("model.hidden_size={}", hidden),
          fmt::format("model.ffn_hidden_size={}", 11 * hidden / 4),
          fmt::format("model.vocab_size={}", drawn(random, {32000, 64000, 128256, 256000})),
          fmt::format("cluster={}", drawn(random, {"dgx-a100", "dgx-h100"})),
          fmt::format("recompute={}", drawn(random, {"none", "selective", "full"}))};
}

TEST(BalanceAuto, IsSoOfDrawnScenarios) {
  std::mt19937 random(19);
  for (int i = 0; i < testing::rounds(32); ++i) {
    const auto scenario = drawn_scenario(random, i % 2 == 0 ? std::span(kFixedOrders) : kPlanned);
    EXPECT_EQ(missed(scenario), 0) << fmt::format("{}", fmt::join(scenario, " "));
  }
}

// Schedules that plan by seconds may plan worse for faster links.
TEST(BalanceAuto, IsNeverSlowerWithMoreMemoryNorFasterLinksWhereTheOrderIsFixed) {
  std::mt19937 random(5);
  for (int i = 0; i < 20; ++i) {
    auto scenario = drawn_scenario(random, kFixedOrders);
    scenario.emplace_back("parallel.tensor_model_parallel_size=8");
    const auto with = [&](const std::string& change) {
      auto changed = scenario;
      changed.push_back(change);
      return outcome_of(read(changed));
    };
    scenario.emplace_back("cluster.network.bandwidth=100 Gbps");
    const Outcome usual = with("cluster.network.latency=20 us");
    EXPECT_LE(with("cluster.network.latency=5 us").iteration, usual.iteration);
    EXPECT_LE(with("cluster.network.bandwidth=200 Gbps").iteration, usual.iteration);
    const auto within = [&](double share) {
      return with(fmt::format("memory.capacity={} B", share * usual.peak.value() + 1)).iteration;
    };
    EXPECT_LE(within(1.5), within(1)) << fmt::format("{}", fmt::join(scenario, " "));
  }
}

constexpr const char* kFourChunks =
    "{name: interleaved-1f1b, virtual_pipeline_model_parallel_size: 4}";

// Logits of four layers' time: the least slowest stage left others empty, and chunks uneven.
TEST(BalanceAuto, IsNeverSlowerThanAnEvenSplitNorLeavesAStageEmptyThatNeedNotBe) {
  const std::vector<const char*> all{"zb-1p", "1f1b", "zb-v", "v-half", "dualpipev", kFourChunks};
  for (const char* schedule : testing::some(all)) {
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

// Older versions of weights move with their layers, as activations do.
TEST(BalanceAuto, FindsRoomForWeightVersionsWhereverThereIsMore) {
  for (const char* schedule : {"schedule=pipedream", "schedule=pipedream-2bw"}) {
    bool fitted = false;
    for (int gib = 10; gib <= 20; ++gib) {
      const auto fits = [&] {
        try {
          (void)prepare_first(read({schedule, fmt::format("memory.capacity={} GiB", gib)}));
          return true;
        } catch (const InfeasibleError&) {
          return false;
        }
      }();
      EXPECT_TRUE(fits || !fitted) << schedule << " within " << gib << " GiB";
      fitted = fitted || fits;
    }
    EXPECT_TRUE(fitted) << schedule;
  }
}

TEST(BalanceAuto, NamesTheLimitThatAScheduleTakesAsTheNearestChange) {
  const Scenario scenario = read({"schedule=zb", "memory.capacity=12 GiB"});
  try {
    (void)prepare_first(scenario);
    FAIL() << "fits";
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("nearest change: memory_limit: {total: 12.00 GiB} ("),
              std::string::npos)
        << error.what();
  }
}

// The program of a stream follows how many iterations are simulated: no split has one of its own.
TEST(BalanceAuto, TakesDescribedStreams) {
  const auto path = testing::test_folder() / "stream.yaml";
  testing::write_file(path,
                      "placement: linear\n"
                      "rules:\n"
                      "  - {passes: [F], repeat: p - 1 - d}\n"
                      "  - {passes: [F, BW]}\n"
                      "  - {passes: [BW]}\n"
                      "weight_versions: {kept: p - d, step_after: microbatch}\n");
  const Outcome described = outcome_of(read({"schedule={file: " + path.string() + "}"}));
  EXPECT_LE(described.iteration, outcome_of(read({"schedule=pipedream"})).iteration);
}

// Orders by seconds and bytes may miss a faster split, but the split found fits.
TEST(BalanceAuto, FitsWhereTheOrderFollowsTheSplitToo) {
  for (const char* schedule : testing::some<const char*>({"schedule=zb-v", "schedule=v-half"})) {
    const std::string layers = "model.num_layers=24";
    const Outcome free = outcome_of(read({schedule, layers}));
    const double most = 0.95 * free.peak.value();
    const Outcome tight =
        outcome_of(read({schedule, layers, fmt::format("memory.capacity={} B", most)}));
    EXPECT_LE(tight.peak.value(), most) << schedule;
  }
}

}  // namespace
}  // namespace pipesim::balance_test
