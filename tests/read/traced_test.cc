#include "sim/read/traced.h"

#include <functional>
#include <gtest/gtest.h>
#include <string>

#include "models/layer_memory.h"
#include "models/layer_parameters.h"
#include "models/layer_work.h"
#include "sim/core/error.h"
#include "sim/read/scenario.h"
#include "tests/folder.h"
#include "tests/read/message_of.h"
#include "tests/traced_llama.h"

namespace pipesim::traced_test {
namespace {

using testing::message_of;

const std::string kData = std::string(PIPESIM_SOURCE_DIR) + "/tests/read/data/traced/";

Transformer traced(const std::string& name) { return read_traced_file(kData + name, {}); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Traced, HasTheCostsOfTheCatalogue) { testing::expect_as_catalogued(traced("llama.json")); }

TEST(Traced, ExchangesRowsInFrontOfExpertsAndBehind) {
  const Transformer model = traced("mixture.json");
  LayerContext context{.micro_batch_size = 1, .seq_length = 2048};
  context.expert = 4;
  ASSERT_EQ(fault_of(model, context), "");
  const double rows = 2.0 * 2048 * 1024 * 2;  // two a token, bf16
  for (const PassKind pass : {PassKind::kF, PassKind::kB}) {
    const Work work = layer_work(model, LayerKind::kTraced2, pass, context);
    const auto sums = testing::exchanged(work);
    EXPECT_EQ(sums.at({CollectiveKind::kAllToAll, Group::kExpert}), 2 * rows);
    EXPECT_EQ(work.routed, 1);
  }
  EXPECT_TRUE(layer_work(model, LayerKind::kTraced2, PassKind::kW, context).collectives.empty());
  EXPECT_TRUE(layer_work(model, LayerKind::kTraced1, PassKind::kF, context).collectives.empty());
}

// Expert ranks hold fewer experts with more rows each; ranks that divide tokens or experts have
// their part of the work.
TEST(Traced, DividesExpertsAndTheirRows) {
  const Transformer model = traced("mixture.json");
  const auto of_experts = [&](const LayerContext& context) {
    EXPECT_EQ(fault_of(model, context), "");
    Flops sum;
    for (const Matmul& matmul :
         layer_work(model, LayerKind::kTraced2, PassKind::kF, context).matmuls) {
      if (matmul.grouped) sum += matmul.flops();
    }
    return sum.value();
  };
  LayerContext context{.micro_batch_size = 1, .seq_length = 2048};
  const double whole = of_experts(context);
  EXPECT_EQ(whole, 3 * 2.0 * 4096 * 1024 * 2048);
  const LayerMemory held = layer_memory(model, LayerKind::kTraced2, context);
  context.expert = 8;
  EXPECT_EQ(of_experts(context), whole);
  const LayerMemory divided = layer_memory(model, LayerKind::kTraced2, context);
  EXPECT_EQ(divided.expert_parameters, held.expert_parameters / 8);
  EXPECT_EQ(divided.dense_parameters, held.dense_parameters);
  EXPECT_EQ(divided.activation, held.activation);
  context.tensor = 2;
  context.sequence_parallel = true;
  EXPECT_EQ(of_experts(context), whole / 2);
  context.expert_tensor = 2;
  context.expert = 4;
  EXPECT_EQ(of_experts(context), whole / 2);
}

TEST(Traced, ActivatesTheExpertsOfAToken) {
  const Transformer model = traced("mixture.json");
  const double expert = 3.0 * 1024 * 2048;
  EXPECT_DOUBLE_EQ(total_parameters(model) - total_activated_parameters(model), 2 * 6 * expert);
}

TEST(Traced, RefusesWhatItsFileDoesNotSay) {
  const Transformer model = traced("llama.json");
  const auto fault = [&](const std::function<void(LayerContext&)>& change) {
    LayerContext context{.micro_batch_size = 1, .seq_length = 4096};
    change(context);
    return fault_of(model, context);
  };
  EXPECT_NE(fault([](LayerContext& c) { c.context = 2; }).find("context parallelism"),
            std::string::npos);
  EXPECT_NE(fault([](LayerContext& c) { c.precision = Precision::kFp8; }).find("8 or 4 bits"),
            std::string::npos);
  EXPECT_NE(fault([](LayerContext& c) {
              c.recompute = RecomputeGranularity::kSelective;
            }).find("in full or not at all"),
            std::string::npos);
  EXPECT_NE(fault([](LayerContext& c) { c.adapter_rank = 8; }).find("adapters"), std::string::npos);
  EXPECT_EQ(fault([](LayerContext& c) { c.recompute = RecomputeGranularity::kFull; }), "");
}

// A file with one text replaced.
std::string changed(const std::string& name, const std::string& from, const std::string& to) {
  const auto path = testing::test_folder() / "changed.json";
  testing::write_file(path, replaced(testing::read_file(kData + name), from, to));
  return path.string();
}

// Ranks share out heads whole, and no matmul in parts that are none.
TEST(Traced, RefusesRanksThatDivideNoHeads) {
  const auto fault = [](const Transformer& model, int tensor) {
    LayerContext context{.micro_batch_size = 1, .seq_length = 4096};
    context.tensor = tensor;
    return fault_of(model, context);
  };
  const Transformer llama = traced("llama.json");
  EXPECT_EQ(fault(llama, 8), "");
  EXPECT_NE(fault(llama, 16).find("8 heads of attention.k_proj.weight in layers.0"),
            std::string::npos);
  EXPECT_NE(fault(llama, 3).find("heads of"), std::string::npos);
  // Groups of keys that are repeated before attention: the matrix alone says how many there are.
  const Transformer repeated =
      read_traced_file(changed("llama.json", "\"groups\": 8", "\"groups\": 32"), {});
  EXPECT_NE(fault(repeated, 16).find("8 heads of attention.k_proj.weight"), std::string::npos);
  const Transformer whole = read_traced_file(
      changed("llama.json", R"("columns", "heads": [32])", R"("whole", "heads": [12])"), {});
  EXPECT_EQ(fault(whole, 8), "");
  const Transformer of_queries = read_traced_file(
      changed("llama.json", "\"heads\": 32, \"groups\": 8", "\"heads\": 12, \"groups\": 8"), {});
  EXPECT_NE(fault(of_queries, 8).find("12 heads of queries in layers.0"), std::string::npos);
  // Scores of sequences times heads: ranks divide the heads.
  const Transformer scores = read_traced_file(
      changed(
          "llama.json",
          R"("matmul": {"batch": 1, "m": "b*s", "n": 4096, "k": 4096}, "exchange": "enter", "divided": "n")",
          R"("matmul": {"batch": "b*12", "m": "s", "n": 4096, "k": 4096}, "divided": "batch")"),
      {});
  EXPECT_EQ(fault(scores, 4), "");
  EXPECT_NE(fault(scores, 8).find("attention.q_proj.weight, 12 wide"), std::string::npos);
}

// A window, or a number of positions, may make a size another one beyond.
TEST(Traced, RefusesSequencesThatWereNotTraced) {
  const Transformer model = traced("llama.json");
  LayerContext context{.micro_batch_size = 1, .seq_length = 8192};
  EXPECT_EQ(fault_of(model, context),
            "seq_length 8192 is outside of the 512 to 4096 tokens that the model was traced for: "
            "trace it for sequences of this length");
  context.seq_length = 256;
  EXPECT_NE(fault_of(model, context), "");
  context.whole = 4096;  // a slice of a sequence that was
  EXPECT_EQ(fault_of(model, context), "");
}

TEST(Traced, IsKnownByItsSchemaWhereverItStands) {
  EXPECT_TRUE(is_traced_file(kData + "llama.json"));
  const std::string schema = "\"schema\": \"pipesim-trace/1\",\n";
  const std::string text = replaced(testing::read_file(kData + "llama.json"), schema, "");
  const auto path = testing::test_folder() / "turned.json";
  testing::write_file(path, replaced(text, "\"hidden_size\"", schema + "\"hidden_size\""));
  EXPECT_TRUE(is_traced_file(path.string()));
  testing::write_file(path, "{\"note\": \"pipesim-trace/1\"}");
  EXPECT_FALSE(is_traced_file(path.string()));
  EXPECT_FALSE(is_traced_file(kData + "nowhere.json"));
}

TEST(Traced, NamesTheLineOfAFault) {
  const auto refusal = [&](const std::string& from, const std::string& to) {
    return message_of([&] { (void)read_traced_file(changed("llama.json", from, to), {}); });
  };
  EXPECT_NE(refusal("\"type\": \"bfloat16\"", "\"type\": \"int8\"").find(":5:9: "),
            std::string::npos);
  EXPECT_NE(refusal("b*s*4096", "b*s*0x10").find("expected a number from 0 to 1e+18, not '0x10'"),
            std::string::npos);
  EXPECT_NE(refusal("\"n\": 4096", "\"n\": 0").find("a side is at least 1"), std::string::npos);
  EXPECT_NE(refusal("[512, 4096]", "[4096, 512]").find("4096 to"), std::string::npos);
  EXPECT_NE(refusal("[512, 4096]", "[512]").find("two numbers of tokens"), std::string::npos);
  EXPECT_NE(refusal("pipesim-trace/1", "pipesim-trace/2").find(":1:12: "), std::string::npos);
  EXPECT_NE(refusal("b*s*4096", "b*t*4096").find("'b*t*4096' is no size"), std::string::npos);
  EXPECT_NE(refusal("4096\", \"type\": \"bfloat16", "4096\", \"type\": \"bfloat17")
                .find("type 'bfloat17'"),
            std::string::npos);
  EXPECT_NE(refusal("\"reads\": [0]", "\"reads\": [999]").find("999"), std::string::npos);
  EXPECT_NE(refusal("\"layers\": [0", "\"layers\": [1").find("layers.0"), std::string::npos);
  EXPECT_NE(
      refusal("\"vocab_size\": 128256", "\"vocab_size\": 32000").find("the rest is not known"),
      std::string::npos);
  EXPECT_NE(refusal("\"other_parameters\": {}", "\"other_parameters\": {\"vision\": [1000000000]}")
                .find("12.5% of them stand outside of the blocks"),
            std::string::npos);
}

TEST(Traced, IsAModelOfAScenario) {
  const std::string model = "{traced: " + kData + "mixture.json, name: mine}";
  const auto scenario = [&](const std::string& rest) {
    const YamlSource source("s.yaml", "model: " + model +
                                          "\ncluster: dgx-h100\nschedule: 1f1b\nparallel: "
                                          "{pipeline_model_parallel_size: 2}\nbatch: "
                                          "{num_microbatches: 4, micro_batch_size: 1, seq_length: "
                                          "2048}\n" +
                                          rest);
    return read_scenario(source);
  };
  EXPECT_EQ(scenario("").modelled->model.name, "mine");
  EXPECT_NE(message_of([&] { scenario("recompute: selective\n"); }).find("s.yaml:1:8: "),
            std::string::npos);
  // Its kernels are not fused, those of measured runs are.
  EXPECT_FALSE(scenario("").band);
  EXPECT_NE(message_of([&] { scenario("memory: {precision: fp8}\n"); }).find("8 or 4 bits"),
            std::string::npos);
}

}  // namespace
}  // namespace pipesim::traced_test
