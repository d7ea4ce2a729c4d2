// Sensitivity: every row is the scenario that a person would have written with the other number.
#include "sim/sensitivity/sensitivity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "sim/case/simulate.h"
#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/sensitivity/report.h"
#include "sim/sensitivity/what_ifs.h"

namespace pipesim::sensitivity_test {
namespace {

constexpr std::array kFactors{0.5, 2.0};

constexpr const char* kGiven = R"(
schedule: zb-1p
parallel: {pipeline_model_parallel_size: 4}
batch: {num_microbatches: 8, micro_batch_size: 1}
cost: {kind: given, forward: 10 ms, backward_input: 12 ms, backward_weight: 7 ms, transfer: 1 ms}
memory: {kind: given, activation: 2 GiB, weight_stash: 1 GiB}
)";

constexpr const char* kModelled = R"(
schedule: 1f1b
model: {base: llama3-8b, vocab_size: 128256}
cluster: {name: dgx-h100}
parallel: {pipeline_model_parallel_size: 4, tensor_model_parallel_size: 8, sequence_parallel: true}
batch: {num_microbatches: 8, micro_batch_size: 1, seq_length: 4096}
memory: {kind: model, capacity: 60 GiB}
)";

Scenario read(const std::string& text, const std::vector<std::string>& changes = {}) {
  std::vector<Override> overrides;
  for (const std::string& change : changes) overrides.push_back(parse_override(change, {}));
  return read_scenario(YamlSource("test.yaml", text, overrides));
}

Sensitivity sensitivity(const Scenario& scenario) {
  return sensitivity_of(prepare_first(scenario), kFactors);
}

const Effect& effect(const Sensitivity& result, std::string_view what, double factor) {
  const auto found = std::ranges::find_if(result.effects, [&](const Effect& each) {
    return each.what == what && each.factor == factor;
  });
  if (found == result.effects.end()) throw std::out_of_range(std::string(what));
  return *found;
}

// A change by hand and the row that stands for it.
struct Same {
  const char* what;
  double factor;
  std::vector<std::string> by_hand;
};

void expect_same(const char* text, const std::vector<Same>& all) {
  const Scenario scenario = read(text);
  const Sensitivity result = sensitivity(scenario);
  for (const Same& each : all) {
    SCOPED_TRACE(each.what);
    const Scenario changed = read(text, each.by_hand);
    const Report report = simulate(prepare_first(changed)).report;
    const Effect& row = effect(result, each.what, each.factor);
    ASSERT_TRUE(row.outcome.has_value()) << row.refusal;
    const Outcome& now = *row.outcome;
    EXPECT_NEAR(*now["iteration_seconds"] / report.iteration.value(), 1, 1e-12);
    EXPECT_NE(now["iteration_seconds"], result.base["iteration_seconds"]);
    EXPECT_DOUBLE_EQ(*now["bubble_rate"], report.bubble_rate);
    EXPECT_EQ(now["peak_activation_bytes"], report.peak_activation.value());
    const auto& peak = report.peak_memory;
    EXPECT_EQ(now["peak_memory_bytes"],
              peak ? std::optional(peak->value()) : std::optional<double>());
  }
}

TEST(Sensitivity, ChangesGivenCostsAsAPersonWould) {
  expect_same(
      kGiven,
      {{"forward", 2, {"cost.forward=20 ms"}},
       {"backward input", 0.5, {"cost.backward_input=6 ms"}},
       {"backward weight", 2, {"cost.backward_weight=14 ms"}},
       {"transfer", 2, {"cost.transfer=2 ms"}},
       {"microbatches", 2, {"batch.num_microbatches=16"}},
       {"speed of the slowest link",
        0.5,
        {"perturb.links=[{from: 0, to: 1, factor: 2}, {from: 1, to: 0, factor: 2}]"}},
       {"speed of the busiest device", 0.5, {"perturb.stragglers=[{rank: 0, factor: 2}]"}}});
}

TEST(Sensitivity, ChangesPartsOfLayersWithTheirPasses) {
  const char* text = R"(
schedule: {name: interleaved-1f1b, overlap_moe_expert_parallel_comm: true}
parallel: {pipeline_model_parallel_size: 2}
batch: {num_microbatches: 8}
cost:
  kind: given
  layer:
    count: 4
    forward: {attention: 10 ms, dispatch: 16 ms, experts: 12 ms, combine: 16 ms}
    backward_input: {attention: 12 ms, dispatch: 16 ms, experts: 13 ms, combine: 16 ms}
    backward_weight: {attention: 8 ms, experts: 11 ms}
memory: {kind: given, activation: 2 GiB, weight_stash: 1 GiB}
)";
  const auto part = [](const std::string& path, const char* value) {
    return "cost.layer." + path + "=" + value;
  };
  expect_same(
      text,
      {{"forward",
        0.5,
        {part("forward.attention", "5 ms"), part("forward.dispatch", "8 ms"),
         part("forward.experts", "6 ms"), part("forward.combine", "8 ms")}},
       {"backward weight",
        2,
        {part("backward_weight.attention", "16 ms"), part("backward_weight.experts", "22 ms")}},
       {"exchange of tokens",
        0.5,
        {part("forward.dispatch", "8 ms"), part("forward.combine", "8 ms"),
         part("backward_input.dispatch", "8 ms"), part("backward_input.combine", "8 ms")}}});
}

TEST(Sensitivity, ReachesMessagesAndCollectivesOfAModelledCluster) {
  const Scenario scenario = read(kModelled);
  const double link = scenario.cluster->link_bandwidth.value() / 1e9;
  const double network = scenario.cluster->nic_bandwidth.value() / 1e9;
  expect_same(kModelled, {{"network bandwidth",
                           0.5,
                           {"cluster.network.bandwidth=" + std::to_string(network / 2) + " GB/s",
                            "cluster.network.achieved=1"}},
                          {"node link bandwidth",
                           2,
                           {"cluster.node.link_bandwidth=" + std::to_string(link * 2) + " GB/s"}},
                          {"vocabulary size", 2, {"model.vocab_size=256512"}}});
}

TEST(Sensitivity, AsksForTheHostLinkWhereActivationsAreCopied) {
  const std::vector<std::string> offload{"offload=true", "batch.num_microbatches=16"};
  const Scenario scenario = read(kModelled, offload);
  const std::array fast{100.0};
  const Sensitivity result = sensitivity_of(prepare_first(scenario), fast);
  const HostLink& host = scenario.hardware->host;
  const auto rate = [](double value) { return std::to_string(value / 1e9) + " GB/s"; };
  auto by_hand = offload;
  by_hand.push_back("cluster.host={alone: " + rate(fast[0] * host.alone.value()) +
                    ", duplex: " + rate(fast[0] * host.duplex.value()) + "}");
  const Scenario faster = read(kModelled, by_hand);
  const Report report = simulate(prepare_first(faster)).report;
  const Effect& row = effect(result, "host link bandwidth", fast[0]);
  ASSERT_TRUE(row.outcome.has_value()) << row.refusal;
  const auto peak = (*row.outcome)["peak_activation_bytes"];
  EXPECT_EQ(peak, report.peak_activation.value());
  EXPECT_LT(*peak, *result.base["peak_activation_bytes"]);
}

TEST(Sensitivity, MemoryOfAGpuDecidesOnlyWhatFits) {
  const Sensitivity result = sensitivity(read(kModelled));
  EXPECT_EQ(result.base["fits"], static_cast<double>(MemoryFit::kYes));
  const Effect& less = effect(result, "GPU memory", 0.5);
  EXPECT_EQ(less.from, "60.00 GiB");
  EXPECT_EQ(less.to, "30.00 GiB");
  const MemoryFit fits =
      fit_of(Bytes(*result.base["peak_memory_bytes"]),
             {.low = *result.base["peak_memory_low_bytes"] / *result.base["peak_memory_bytes"],
              .high = *result.base["peak_memory_high_bytes"] / *result.base["peak_memory_bytes"]},
             0.5 * 60 * kGiB);
  EXPECT_EQ((*less.outcome)["fits"], static_cast<double>(fits));
  EXPECT_EQ((*less.outcome)["iteration_seconds"], result.base["iteration_seconds"]);
}

TEST(Sensitivity, SortsByWhatMovesThroughputMost) {
  const Sensitivity result = sensitivity(read(kGiven));
  std::vector<double> sizes;
  for (size_t i = 0; i < result.effects.size(); i += kFactors.size()) {
    double size = 0;
    for (size_t k = i; k < i + kFactors.size(); ++k) {
      EXPECT_EQ(result.effects[k].what, result.effects[i].what);
      size = std::max(size,
                      std::abs(std::log(*(*result.effects[k].outcome)["microbatches_per_second"] /
                                        *result.base["microbatches_per_second"])));
    }
    sizes.push_back(size);
  }
  EXPECT_GE(sizes.size(), 7U);
  EXPECT_TRUE(std::ranges::is_sorted(sizes, std::greater<>()));
}

TEST(Sensitivity, SaysWhyAValueDoesNotApplyAndLeavesNoneOut) {
  const Sensitivity result = sensitivity(read(kGiven));
  EXPECT_EQ(result.not_applicable.size() + result.effects.size() / kFactors.size(),
            what_ifs().size());
  const auto network =
      std::ranges::find(result.not_applicable, "network bandwidth", &NotApplicable::what);
  ASSERT_NE(network, result.not_applicable.end());
  EXPECT_EQ(network->reason, "the scenario has no cluster");
  const std::string table = sensitivity_table(result);
  EXPECT_NE(table.find("does not apply, the scenario has no cluster: network bandwidth"),
            std::string::npos)
      << table;
}

// An efficiency of 0.83 cannot be doubled, nor 5 microbatches halved.
TEST(Sensitivity, SaysWhichFactorWasAppliedWhereAValueDoesNotGoSoFar) {
  const Sensitivity result = sensitivity(read(kModelled, {"batch.num_microbatches=5"}));
  const Effect& doubled = effect(result, "matmul efficiency", 2);
  EXPECT_EQ(doubled.to, "1");
  EXPECT_NEAR(doubled.applied * std::stod(doubled.from), 1, 1e-3);
  EXPECT_EQ(effect(result, "matmul efficiency", 0.5).applied, 0.5);
  EXPECT_DOUBLE_EQ(effect(result, "microbatches", 0.5).applied, 0.6);
  EXPECT_EQ(effect(result, "network bandwidth", 2).applied, 2);
  const std::string table = sensitivity_table(result);
  EXPECT_NE(table.find("0.6 (of 0.5)"), std::string::npos) << table;
  EXPECT_NE(table.find("a (of b): multiplied by a"), std::string::npos) << table;
  EXPECT_NE(sensitivity_csv(std::vector{result}).find("batch.num_microbatches,0.5,0.6,5,3,"),
            std::string::npos);
  const Sensitivity even = sensitivity(read(kGiven));
  EXPECT_EQ(sensitivity_table(even).find("(of"), std::string::npos);
}

TEST(Sensitivity, AChangeThatCannotBeRunIsARowWithTheReason) {
  const Scenario scenario =
      read(kGiven, {"schedule=interleaved-1f1b", "batch.num_microbatches=12"});
  const Sensitivity result = sensitivity(scenario);
  const Effect& half = effect(result, "microbatches", 0.5);
  EXPECT_FALSE(half.outcome.has_value());
  EXPECT_EQ(half.to, "6");
  EXPECT_NE(half.refusal.find("a shorter last group"), std::string::npos) << half.refusal;
  EXPECT_EQ(half.refusal.find("test.yaml"), std::string::npos) << half.refusal;
  EXPECT_NE(sensitivity_table(result).find("microbatches x 0.5 cannot be run: "),
            std::string::npos);
  EXPECT_NE(sensitivity_csv(std::vector{result}).find("a shorter last group"), std::string::npos);
}

}  // namespace
}  // namespace pipesim::sensitivity_test
