// The breakdown of costs adds up, and names where every number comes from.
#include "sim/report/text/costs.h"

#include <gtest/gtest.h>

#include "sim/prepare/prepare.h"
#include "sim/read/scenario.h"
#include "sim/report/text/layer_parts.h"

namespace pipesim::costs_test {
namespace {

constexpr const char* kBase = R"(
model: llama3-8b
cluster: dgx-h100
schedule: 1f1b
parallel: {tensor_model_parallel_size: 2, sequence_parallel: true, pipeline_model_parallel_size: 4,
           data_parallel_size: 2}
batch: {global_batch_size: 32, micro_batch_size: 1, seq_length: 4096}
)";

Scenario read(const std::vector<std::pair<std::string, std::string>>& overrides = {},
              const char* base = kBase) {
  std::vector<Override> all;
  for (const auto& [key, value] : overrides) all.push_back({key, value, {}});
  return read_scenario(YamlSource("test", base, all));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_sums(const Scenario& scenario) {
  const CostSetting setting = *prepare_first(scenario).setting;
  const Transformer& model = scenario.modelled->model;
  for (const LayerKind kind : {LayerKind::kDense, LayerKind::kMoe, LayerKind::kEmbedding,
                               LayerKind::kOutput, LayerKind::kMtp}) {
    if (kind == LayerKind::kMoe && !model.experts) continue;
    if (kind == LayerKind::kMtp && model.mtp_layers == 0) continue;
    const LayerCost cost = layer_cost(model, kind, setting, *scenario.hardware);
    const auto expect = [&](PassKind pass, const PassCost& of) {
      Seconds sum = -of.hidden;
      for (const CostPart& part : parts_of(model, kind, pass, setting, *scenario.hardware)) {
        EXPECT_FALSE(part.name.empty());
        EXPECT_FALSE(part.curve.empty());
        EXPECT_LT(part.share, 1) << part.name;
        sum += part.seconds;
      }
      EXPECT_NEAR(sum.value(), of.total().value(), 1e-12 + 1e-9 * of.total().value());
    };
    expect(PassKind::kF, cost.forward);
    expect(PassKind::kB, cost.backward_input);
    expect(PassKind::kW, cost.backward_weight);
  }
}

TEST(Costs, OfAPassAreTheSumOfItsParts) {
  expect_sums(read());
  expect_sums(read({{"cost", "{kind: roofline, tp_comm_overlap: true}"}}));
  expect_sums(read({{"recompute", "selective"}, {"memory", "{kind: model, dropout: true}"}}));
  expect_sums(read({{"memory", "{kind: model, flash_attention: false, precision: fp8}"}}));
  expect_sums(read({{"model", "{base: deepseek-v3, mtp_num_layers: 1}"},
                    {"parallel",
                     "{tensor_model_parallel_size: 2, sequence_parallel: true, "
                     "pipeline_model_parallel_size: 4, data_parallel_size: 4, "
                     "expert_model_parallel_size: 8, expert_tensor_parallel_size: 1, "
                     "context_parallel_size: 2, balance: auto}"},
                    {"memory", "{kind: model, capacity: 9000 GiB}"}}));
  for (const char* exchange :
       {"p2p", "a2a", "a2a+p2p, hierarchical_context_parallel_sizes: [2, 2]"}) {
    expect_sums(read({{"parallel", std::string("{pipeline_model_parallel_size: 4, "
                                               "context_parallel_size: 4, cp_comm_type: ") +
                                       exchange + "}"}}));
  }
}

TEST(Costs, ShowTheStepsOfARingAndWhatTheyHide) {
  const Scenario scenario =
      read({{"parallel",
             "{pipeline_model_parallel_size: 4, context_parallel_size: 4, cp_comm_type: p2p}"}});
  const std::string text = cost_breakdown(prepare_first(scenario));
  for (const char* part : {"context 4 by p2p", "send and receive, context ranks",
                           "4 ranks, 4 a node, 3 steps", "hidden behind matmuls and attention"}) {
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  }
}

TEST(Costs, NameEveryMatmulByItsShape) {
  const Scenario scenario = read();
  const auto parts = parts_of(scenario.modelled->model, LayerKind::kDense, PassKind::kF,
                              *prepare_first(scenario).setting, *scenario.hardware);
  // 32 heads and 2 x 8 groups of 128, and two halves of an MLP of 14336, over two ranks.
  EXPECT_EQ(parts[0].name, "queries, keys, values");
  EXPECT_EQ(parts[0].shape, "4096 x 3072 x 4096");
  EXPECT_DOUBLE_EQ(parts[0].flops.value(), 2.0 * 4096 * 3072 * 4096);
  EXPECT_EQ(parts[2].name, "MLP, first");
  EXPECT_EQ(parts[2].shape, "4096 x 14336 x 4096");
  EXPECT_EQ(parts[0].curve, "matmul");
}

TEST(Costs, AreShownWithTheirSources) {
  const Scenario scenario = read();
  const std::string text = cost_breakdown(prepare_first(scenario));
  for (const char* part :
       {"model llama3-8b, 8.030 B parameters (source: ", "layout Et*8|(t*8|)*2t*8L",
        "dense layer F", "dense layer W", "4096 x 3072 x 4096", "all-gather, tensor ranks",
        "2 ranks, 2 a node", "what closes an iteration", "memory of a GPU", "peak activation",
        "matmul.efficiency: ", "fitted: ", "network.bandwidth: 400 Gbps", "published: "}) {
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  }
  EXPECT_FALSE(has(text, "host.")) << "nothing here is timed by it";
}

TEST(Costs, ShowTheShapeOfExpertsLatentAttentionAndPositions) {
  const auto shown = [](const char* model, const char* parallel) {
    const Scenario scenario = read({{"model", model}, {"parallel", parallel}});
    return cost_breakdown(prepare_first(scenario));
  };
  const std::string deepseek = shown("{base: deepseek-v3, mtp_num_layers: 1}",
                                     "{pipeline_model_parallel_size: 1, data_parallel_size: 8, "
                                     "expert_model_parallel_size: 8}");
  for (
      const char* part :
      {"671.026 B parameters, 37.552 B activated", "128 heads, latent attention, MLP 18432 gated",
       "latent attention: queries of rank 1536, keys and values of rank 512, head size 128 without "
       "position and 64 with, 128 of values",
       "58 MoE layers after 3 dense: 256 experts of 2048, 8 a token and 1 shared; MTP modules 1"}) {
    EXPECT_TRUE(has(deepseek, part)) << part << "\n" << deepseek;
  }
  const std::string gpt = shown("zb-1.5b", "{pipeline_model_parallel_size: 2}");
  EXPECT_TRUE(has(gpt, "MLP 9216, vocabulary 32000, tied, 4096 learned positions\n")) << gpt;
  EXPECT_FALSE(has(gpt, "MoE"));
}

TEST(Costs, ShowThePassesOfASharedVocabularyAndTheirCollectives) {
  for (const char* placement : {"vocab-1", "vocab-2", "interlaced"}) {
    const Scenario scenario = read({{"vocabulary", std::string("{placement: ") + placement + "}"}});
    const std::string text = cost_breakdown(prepare_first(scenario));
    for (const char* part :
         {"share S", "share T", "share IF", "share IB", "tokens sorted and masked",
          "collective softmax all-reduce", "collective embedding all-reduce", "all-reduce, devices",
          "from S to T a device keeps", "source: docs/reference/vocabulary-parallelism.md"}) {
      EXPECT_TRUE(has(text, part)) << placement << ": " << part << "\n" << text;
    }
    const bool early = scenario.vocabulary == VocabularyPlacement::kVocab2;
    EXPECT_EQ(has(text, "collective output gradient"), !early) << "T does not hold B up";
    const bool waits = scenario.vocabulary == VocabularyPlacement::kInterlaced;
    EXPECT_EQ(has(text, "passes of layers keep 96.5% of their rate"), !waits) << placement;
  }
}

TEST(Costs, ShowCopiesToTheHostAndWhereTheirSecondsComeFrom) {
  const Scenario scenario = read({{"offload", "true"}});
  const std::string text = cost_breakdown(prepare_first(scenario));
  for (const char* part : {"copies to the host, a microbatch", "out alone",
                           "a copy takes 2 (the ranks of a stage on one switch)", "host.duplex: ",
                           "host.alone: ", "source: docs/reference/model.md, \"Offload\""}) {
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  }
}

// Eight ranks of an H100's node reduce in the switch, four around the ring, more across nodes.
TEST(Costs, NameTheCurveThatACollectiveTakes) {
  const Interconnect of = read().hardware->interconnect;
  const Collective large{CollectiveKind::kAllReduce, Group::kTensor, Bytes(64e6)};
  EXPECT_EQ(curve_of(of, large, {8, 8}), "all_reduce_in_switch");
  EXPECT_EQ(curve_of(of, large, {4, 4}), "all_reduce");
  EXPECT_EQ(curve_of(of, large, {16, 8}), "all_reduce, network");
  EXPECT_EQ(curve_of(of, large, {4, 1}), "network");
  Interconnect slow = of;
  slow.nvls->bandwidth = BytesPerSecond(1e9);
  EXPECT_EQ(curve_of(slow, large, {8, 8}), "all_reduce") << "the faster one is taken";
}

TEST(Costs, SayWhatTheScenarioChanged) {
  const Scenario scenario =
      read({{"cluster", "{name: dgx-h100, node: {link_bandwidth: 100 GB/s}}"}});
  const std::string text = cost_breakdown(prepare_first(scenario));
  EXPECT_TRUE(has(text, "link.bandwidth: 100 GB/s\n")) << text;
  EXPECT_TRUE(has(text, "stated by the scenario")) << text;
  EXPECT_TRUE(has(text, "scaled as the scenario's link is")) << text;
}

TEST(Costs, ThatAreGivenAreThoseOfTheStages) {
  const Scenario scenario = read({}, R"(
schedule: 1f1b
parallel: {pipeline_model_parallel_size: 2}
batch: {num_microbatches: 4}
cost: {kind: given, forward: [10 ms, 12 ms], backward_input: 13 ms, backward_weight: 8 ms}
)");
  const std::string text = cost_breakdown(prepare_first(scenario));
  EXPECT_TRUE(has(text, "12.000 ms")) << text;
  EXPECT_TRUE(has(text, "given by test")) << text;
  EXPECT_FALSE(has(text, "model")) << text;
}

}  // namespace
}  // namespace pipesim::costs_test
