#include "sim/read/model.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "models/layer_parameters.h"
#include "models/layer_work.h"
#include "tests/folder.h"
#include "tests/read/message_of.h"

namespace pipesim::model_test {
namespace {

using testing::message_of;

const std::string kData = std::string(PIPESIM_SOURCE_DIR) + "/tests/read/data/hf/";

const Transformer& catalogue(const std::string& name) {
  static const std::vector<Transformer> kModels = catalogue_models();
  return *std::ranges::find(kModels, name, &Transformer::name);
}

Transformer imported(const std::string& name) {
  return read_hf_config_file(kData + name + "/config.json", {});
}

Transformer model(const std::string& text) {
  const YamlSource source("s.yaml", text);
  YamlMap map(source.root());
  const Transformer read = read_model(map.require("model", "a model"));
  map.finish();
  return read;
}

std::string refusal(const std::string& text) {
  return message_of([&] { (void)model(text); });
}

std::string hf_refusal(const std::string& text) {
  return message_of([&] { (void)read_hf_config(YamlSource("c.json", text).root(), "x"); });
}

TEST(Catalogue, HasThePublishedTotalsOfEveryPublicModel) {
  // Totals of the published weights, without MTP modules and scales.
  const std::map<std::string, double> totals{
      {"llama2-7b", 6738415616},       {"llama2-13b", 13015864320},
      {"llama2-70b", 68976648192},     {"llama3-8b", 8030261248},
      {"llama3-70b", 70553706496},     {"llama3.1-8b", 8030261248},
      {"llama3.1-70b", 70553706496},   {"llama3.1-405b", 405853388800},
      {"gemma2-9b", 9241705984},       {"gemma2-27b", 27227128320},
      {"qwen2-7b", 7615616512},        {"qwen2-72b", 72706203648},
      {"qwen3-8b", 8190735360},        {"mixtral-8x7b", 46702792704},
      {"mixtral-8x22b", 140630071296}, {"deepseek-v2", 235741434880},
      {"deepseek-v3", 671026419200},   {"llama3.2-1b", 1235814400},
      {"llama3.2-3b", 3212749824},     {"deepseek-v2-lite", 15706484224},
      {"gpt-neox-20b", 20554567680}};
  for (const auto& [name, total] : totals) {
    EXPECT_DOUBLE_EQ(total_parameters(catalogue(name)), total) << name;
  }
  EXPECT_NEAR(total_parameters(catalogue("gpt3-175b")) / 175e9, 1, 0.01);
}

TEST(Catalogue, HasThePublishedActivatedTotals) {
  EXPECT_NEAR(total_activated_parameters(catalogue("mixtral-8x22b")) / 39e9, 1, 0.01);
  EXPECT_DOUBLE_EQ(total_activated_parameters(catalogue("deepseek-v2")), 21375800320);
  EXPECT_NEAR(total_activated_parameters(catalogue("mixtral-8x7b")) / 12.9e9, 1, 0.01);
  EXPECT_NEAR(total_activated_parameters(catalogue("deepseek-v3")) / 37e9, 1, 0.02);
}

TEST(Catalogue, HasTheSizesThatNamesRound) {
  const std::map<std::string, double> names{
      {"zb-1.5b", 1.5},   {"zb-6.2b", 6.2},    {"zb-14.6b", 14.6},   {"zb-28.3b", 28.3},
      {"cm-9.6b", 9.6},   {"cm-21b", 21},      {"cm-38.5b", 38.5},   {"cm-98.5b", 98.5},
      {"po-5.8b", 5.8},   {"po-10.5b", 10.5},  {"po-18.1b", 18.1},   {"po-42.9b", 42.9},
      {"po-66.6b", 66.6}, {"po-83.8b", 83.8},  {"megatron-22b", 22}, {"mcore-16b", 16},
      {"mcore-70b", 70},  {"mcore-177b", 177}, {"gpt3-5b", 5}};
  for (const auto& [name, billions] : names) {
    EXPECT_NEAR(total_parameters(catalogue(name)) / (1e9 * billions), 1, 0.02) << name;
  }
}

// NeMo's summary prints model TFLOP and tokens per second and GPU: 562 and 4312, and 765 and 23406.
TEST(Catalogue, TakesTheModelFlopsATokenThatNemoPublishes) {
  const auto flops = [](const char* name, int sequence) {
    return model_flops(catalogue(name), sequence, false).value() / sequence;
  };
  EXPECT_NEAR(flops("nemotron-22b", 4096) / (562e12 / 4312), 1, 0.005);
  EXPECT_NEAR(flops("gpt3-5b", 2048) / (765e12 / 23406), 1, 0.005);
}

TEST(Catalogue, HasTheSizesThatNarayanansTable1Prints) {
  const std::map<std::string, double> table{{"megatron-1.7b", 1.7},   {"megatron-3.6b", 3.6},
                                            {"megatron-7.5b", 7.5},   {"megatron-18b", 18.4},
                                            {"megatron-39b", 39.1},   {"megatron-76b", 76.1},
                                            {"megatron-145b", 145.6}, {"megatron-310b", 310.1},
                                            {"megatron-530b", 529.6}, {"megatron-1t", 1008.0}};
  for (const auto& [name, billions] : table) {
    // To the digit printed; the smallest is 1.652.
    EXPECT_NEAR(total_parameters(catalogue(name)) / 1e9, billions, 0.0501) << name;
  }
  EXPECT_NEAR(total_parameters(catalogue("mcore-1.7b")) / 1e9, 1.7, 0.0501);
}

TEST(Catalogue, FollowsVocabularyParallelismsFormulaPerVocabulary) {
  for (const char* name : {"vp-4b", "vp-10b", "vp-21b", "vp-7b", "vp-16b", "vp-30b"}) {
    for (const int vocabulary : {32000, 64000, 128000, 256000}) {
      const Transformer read = model(std::string("model: {base: ") + name +
                                     ", vocab_size: " + std::to_string(vocabulary) + "}");
      const double h = read.hidden_size;
      const double formula = 12.0 * read.num_layers * h * h + 2 * h * vocabulary;
      EXPECT_NEAR(total_parameters(read) / formula, 1, 0.005) << name << " " << vocabulary;
    }
  }
}

// Activated parameters of the output over those of a transformer layer. A talk of the authors of
// Vocabulary Parallelism prints other values for four of them: DeepSeek-V3 1.53, Llama3-8B 2.24,
// Mixtral-8x22B 0.57, Mixtral-8x7B 0.63.
TEST(Catalogue, HasOutputsAsHeavyAsTheirPublicConfigurationsSay) {
  const std::map<std::string, double> ratios{{"gemma2-9b", 4.63},     {"gemma2-27b", 2.08},
                                             {"deepseek-v3", 1.58},   {"qwen2-7b", 2.34},
                                             {"qwen2-72b", 1.42},     {"llama3-8b", 2.41},
                                             {"llama3-70b", 1.23},    {"llama3.1-405b", 0.66},
                                             {"mixtral-8x22b", 0.29}, {"mixtral-8x7b", 0.33}};
  for (const auto& [name, ratio] : ratios) {
    const Transformer read = catalogue(name);
    const double layer = activated_parameters(read, layer_kind(read, read.num_layers - 1));
    EXPECT_NEAR(activated_parameters(read, LayerKind::kOutput) / layer / ratio, 1, 0.01) << name;
  }
}

TEST(Catalogue, NamesEveryModelOnceAndItsSource) {
  std::set<std::string> names;
  for (const Transformer& each : catalogue_models()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_NE(each.source, "the scenario") << each.name;
    EXPECT_EQ(fault_of(each), "") << each.name;
  }
  EXPECT_EQ(names.size(), 146U);
  EXPECT_EQ(find_model("llama3-70b", {}), catalogue("llama3-70b"));
  EXPECT_EQ(find_model("Llama3_70B", {}).name, "llama3-70b");
  EXPECT_EQ(find_model("meta-llama/Meta-Llama-3-70B", {}).name, "llama3-70b");
}

// Each key of the maps of `model:` with the value that `of` has.
std::vector<std::string> restated_parts(const Transformer& of) {
  static const char* const kKinds[]{"gated_delta", "lightning", "mamba2",
                                    "mamba1",      "kda",       "short_conv"};
  std::vector<std::string> keys;
  std::string map;
  const auto add = [&](const char* key, const auto& value) {
    keys.push_back(fmt::format("{}: {{{}: {}}}", map, key, value));
  };
  if (const auto& latent = of.latent) {
    map = "mla";
    add("q_lora_rank", latent->q_rank);
    add("kv_lora_rank", latent->kv_rank);
    add("qk_head_dim", latent->nope_head_size);
    add("qk_pos_emb_head_dim", latent->rope_head_size);
    add("v_head_dim", latent->v_head_size);
  }
  if (const auto& linear = of.linear) {
    map = "linear_attention";
    add("kind", kKinds[static_cast<size_t>(linear->kind)]);
    add("num_heads", linear->num_heads);
    add("head_size", linear->head_size);
    add("key_heads", linear->key_heads);
    add("key_head_size", linear->key_head_size);
    add("conv_kernel", linear->conv_kernel);
    add("chunk_size", linear->chunk_size);
    add("step_rank", linear->step_rank);
    add("gate_rank", linear->gate_rank);
  }
  if (const auto& sparse = of.sparse) {
    map = "sparse_attention";
    add("num_heads", sparse->num_heads);
    add("head_size", sparse->head_size);
    add("topk", sparse->topk);
  }
  if (const auto& compressed = of.compressed) {
    map = "compressed_attention";
    add("q_lora_rank", compressed->q_rank);
    add("output_groups", compressed->output_groups);
    add("output_rank", compressed->output_rank);
    add("ratio", compressed->ratio);
    add("indexed_ratio", compressed->indexed_ratio);
  }
  if (const auto& own = of.window_heads) {
    map = "window_attention";
    add("num_attention_heads", own->num_attention_heads);
    add("num_query_groups", own->num_query_groups);
    add("kv_channels", own->kv_channels);
    add("v_channels", own->v_channels);
  }
  if (const auto& cross = of.cross) {
    map = "cross_attention";
    add("encoder_layers", cross->encoder_layers);
    add("decoder_seq_length", cross->decoder_seq_length);
  }
  if (const auto& encoder = of.encoder) {
    map = "encoder";
    add("images", encoder->images);
    add("num_layers", encoder->num_layers);
    add("hidden_size", encoder->hidden_size);
    add("num_attention_heads", encoder->num_attention_heads);
    add("ffn_hidden_size", encoder->ffn_hidden_size);
    add("patches", encoder->patches);
    add("patch_inputs", encoder->inputs);
    add("merged_patches", encoder->merged);
    add("projector_size", encoder->projector_size);
    add("projectors", encoder->projectors);
    add("gated_linear_unit", encoder->gated_mlp);
  }
  if (const auto& experts = of.experts) {
    map = "moe";
    add("num_experts", experts->num_experts);
    add("router_topk", experts->experts_per_token);
    add("ffn_hidden_size", experts->ffn_hidden_size);
    add("shared_experts", experts->shared_experts);
    add("first_dense_layers", experts->first_dense_layers);
    add("every", experts->every);
    add("shared_ffn_hidden_size", experts->shared_ffn_hidden_size);
    add("shared_gate", experts->shared_gate);
    add("num_groups", experts->groups);
    add("group_topk", experts->groups_per_token);
    add("router_bias", experts->router_bias);
    add("latent_size", experts->latent_size);
    add("last_dense_layers", experts->last_dense_layers);
    add("capacity_factor", experts->capacity_factor);
  }
  return keys;
}

// Each key of `model:` with the value that `of` has.
std::vector<std::string> restatements(const Transformer& of) {
  static const char* const kNorms[]{"LayerNorm", "RMSNorm", "LayerNorm_without_bias"};
  static const char* const kPositions[]{"learned_absolute", "rope", "none", "relative"};
  static const char* const kQkNorms[]{"false", "true", "whole", "without_weights"};
  std::vector<std::string> keys;
  const auto add = [&keys](const char* key, const auto& value) {
    keys.push_back(fmt::format("{}: {}", key, value));
  };
  add("num_layers", of.num_layers);
  add("hidden_size", of.hidden_size);
  add("num_attention_heads", of.num_attention_heads);
  if (!of.latent) add("num_query_groups", of.num_query_groups);
  if (!of.latent) add("kv_channels", of.kv_channels);
  add("v_channels", of.v_channels);
  add("query_rank", of.q_rank);
  add("values_are_keys", of.values_are_keys);
  add("ffn_hidden_size", of.ffn_hidden_size);
  add("vocab_size", of.vocab_size);
  if (of.max_position_embeddings > 0) add("max_position_embeddings", of.max_position_embeddings);
  add("mtp_num_layers", of.mtp_layers);
  add("residual_streams", of.residual_streams);
  add("residual_block", of.residual_block);
  add("untie_embeddings_and_output_weights", !of.tied_embeddings);
  add("gated_linear_unit", of.gated_mlp);
  add("add_bias_linear", of.linear_bias);
  add("add_qkv_bias", of.qkv_bias);
  add("add_attention_bias", of.attention_bias);
  add("add_mlp_bias", of.mlp_bias);
  add("attention_output_gate", of.output_gate);
  add("attention_sinks", of.sinks);
  add("rotary_in_windows_only", of.rotary_in_windows_only);
  add("bidirectional_attention", of.bidirectional);
  add("post_norms", of.post_norms);
  add("qk_layernorm", kQkNorms[static_cast<size_t>(of.qk_norm)]);
  add("normalization", kNorms[static_cast<size_t>(of.norm)]);
  add("position_embedding_type", kPositions[static_cast<size_t>(of.positions)]);
  add("rotary_percent", of.rotary_percent);
  add("attention_window", of.attention_window);
  add("chunked_window", of.chunked_window);
  if (!of.layer_pattern.empty()) add("layer_pattern", "'" + of.layer_pattern + "'");
  std::vector<int> sizes(of.mlp_sizes.begin(), of.mlp_sizes.end());
  std::erase(sizes, 0);
  add("mlp_sizes", fmt::format("[{}]", fmt::join(sizes, ", ")));
  for (const std::string& part : restated_parts(of)) keys.push_back(part);
  return keys;
}

TEST(Catalogue, HasModelsThatAreAsTheyWereWhereAnyKeyIsRestated) {
  for (const Transformer& each : catalogue_models()) {
    for (const std::string& key : restatements(each)) {
      EXPECT_EQ(model("model: {base: " + each.name + ", " + key + "}"), each)
          << each.name << ", " << key;
    }
  }
}

TEST(Catalogue, NamesTheNearestModel) {
  EXPECT_NE(refusal("model: llama3-80b").find("did you mean 'llama3-8b'?"), std::string::npos)
      << refusal("model: llama3-80b");
  EXPECT_NE(refusal("model: {base: deepsek-v3}")
                .find("s.yaml:1:15: model 'deepsek-v3' is not known; did you mean 'deepseek-v3'?"),
            std::string::npos)
      << refusal("model: {base: deepsek-v3}");
}

TEST(HfConfig, EqualsTheCatalogue) {
  for (const char* name : {"llama3-8b", "gemma2-9b", "qwen2-7b", "qwen3-8b", "mixtral-8x7b",
                           "deepseek-v2", "deepseek-v3", "gpt-neox-20b"}) {
    Transformer read = imported(name);
    EXPECT_EQ(read.name, name);
    read.source = catalogue(name).source;
    EXPECT_EQ(read, catalogue(name)) << name;
  }
}

TEST(HfConfig, HasThePublishedTotalsOfModelsOutsideTheCatalogue) {
  EXPECT_DOUBLE_EQ(total_parameters(imported("gpt2")), 124439808);
  EXPECT_DOUBLE_EQ(total_parameters(imported("qwen3-30b-a3b")), 30532122624);
  EXPECT_DOUBLE_EQ(total_parameters(imported("gpt-neox-20b")), 20554567680);
  // But for the gates of the shared experts, 100,352.
  EXPECT_NEAR(total_parameters(imported("qwen2-57b-a14b")), 57.4e9, 0.1e9);
  EXPECT_NEAR(total_activated_parameters(imported("qwen2-57b-a14b")), 14.2e9, 0.3e9);
}

TEST(HfConfig, IsCalledAsItsFolderUnlessTheFileHasAName) {
  EXPECT_EQ(imported("gpt2").name, "gpt2");
  const auto named = testing::test_folder() / "small.json";
  testing::write_file(named, testing::read_file(kData + "gpt2/config.json"));
  EXPECT_EQ(read_hf_config_file(named.string(), {}).name, "small");
}

TEST(HfConfig, TakesOverridesBesideTheFile) {
  const Transformer read =
      model("model: {hf_config: " + kData + "llama3-8b/config.json, num_layers: 4}");
  EXPECT_EQ(read.num_layers, 4);
  EXPECT_EQ(read.ffn_hidden_size, 14336);
}

TEST(HfConfig, LooksBesideTheScenario) {
  const YamlSource source("s.yaml", "{hf_config: gpt2/config.json}");
  EXPECT_EQ(read_model(source.root(), kData + "s.yaml").hidden_size, 768);
  EXPECT_NE(
      refusal("model: {hf_config: nowhere.json}").find("s.yaml:1:20: cannot read 'nowhere.json'"),
      std::string::npos)
      << refusal("model: {hf_config: nowhere.json}");
}

TEST(HfConfig, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(
      hf_refusal("{architectures: [LlamaForCasualLM]}").find("did you mean 'LlamaForCausalLM'?"),
      std::string::npos);
  EXPECT_NE(hf_refusal("{hidden_size: 4}").find("'architectures' is missing"), std::string::npos);
  EXPECT_NE(hf_refusal("{architectures: [LlamaForCausalLM], num_hidden_layers: 4}")
                .find("'hidden_size' is missing"),
            std::string::npos);
  const std::string moe = hf_refusal(
      "{architectures: [Qwen3MoeForCausalLM], num_hidden_layers: 4, hidden_size: 64, "
      "intermediate_size: 64, vocab_size: 64, num_attention_heads: 4, num_experts: 4, "
      "num_experts_per_tok: 1, moe_intermediate_size: 64, mlp_only_layers: [1]}");
  EXPECT_NE(moe.find("mlp_only_layers: layers without experts between those with them"),
            std::string::npos)
      << moe;
  const std::string start = "{architectures: [LlamaForCausalLM], num_hidden_layers: 4,\n";
  EXPECT_NE(hf_refusal(start + "hidden_size: 64, intermediate_size: 64, vocab_size: 64, "
                               "num_attention_heads: 0}")
                .find("c.json:1:1: formula 'hidden_size // num_attention_heads'"),
            std::string::npos);
  EXPECT_NE(hf_refusal(start + " \"hidden_size\": \"8192\"}")
                .find("c.json:2:17: hidden_size: expected a whole number, not a text"),
            std::string::npos);
  EXPECT_NE(hf_refusal(start + "hidden_size: 64, intermediate_size: 64, vocab_size: 64, "
                               "num_attention_heads: 4, tie_word_embeddings: \"false\"}")
                .find("tie_word_embeddings: expected true or false, not a text"),
            std::string::npos);
}

TEST(Model, IsAGptUnlessItsFamilySaysOtherwise) {
  const Transformer gpt = model(
      "model: {num_layers: 2, hidden_size: 64, num_attention_heads: 4, vocab_size: 100, "
      "max_position_embeddings: 32}");
  EXPECT_EQ(gpt.ffn_hidden_size, 256);
  EXPECT_EQ(gpt.num_query_groups, 4);
  EXPECT_EQ(gpt.kv_channels, 16);
  EXPECT_TRUE(gpt.tied_embeddings && gpt.linear_bias && !gpt.gated_mlp);
  EXPECT_EQ(gpt.norm, Norm::kLayerNorm);
  EXPECT_EQ(gpt.positions, Positions::kLearned);
  const Transformer llama = model(
      "model: {family: llama, num_layers: 2, hidden-size: 64, num_attention_heads: 4, "
      "num_query_groups: 2, ffn_hidden_size: 96, vocab_size: 100, normalization: LayerNorm}");
  EXPECT_TRUE(!llama.tied_embeddings && !llama.linear_bias && llama.gated_mlp);
  EXPECT_EQ(llama.positions, Positions::kRotary);
  EXPECT_EQ(llama.norm, Norm::kLayerNorm);
}

TEST(Model, ReplacesWhatItsBaseSays) {
  const Transformer read = model(
      "model: {base: deepseek-v3, name: small, num_layers: 8, mtp_num_layers: 0, "
      "moe: {num_experts: 64}, untie_embeddings_and_output_weights: false}");
  EXPECT_EQ(read.name, "small");
  EXPECT_EQ(read.num_layers, 8);
  EXPECT_EQ(read.mtp_layers, 0);
  EXPECT_EQ(read.experts->num_experts, 64);
  EXPECT_EQ(read.experts->shared_experts, 1);
  EXPECT_TRUE(read.tied_embeddings);
  EXPECT_EQ(read.latent->q_rank, 1536);
}

TEST(Model, RefusesMistakesWithTheirPlace) {
  EXPECT_NE(refusal("model: {base: llama3-8b, num_layer: 4}")
                .find("s.yaml:1:26: model.num_layer: unknown key; did you mean 'num_layers'?"),
            std::string::npos)
      << refusal("model: {base: llama3-8b, num_layer: 4}");
  EXPECT_NE(refusal("model: {num_layers: 2}").find("'hidden_size' is missing"), std::string::npos);
  EXPECT_NE(refusal("model: {base: llama3-8b, num_query_groups: 3}")
                .find("32 attention heads do not divide into 3 query groups"),
            std::string::npos);
  EXPECT_NE(refusal("model: {base: mixtral-8x7b, moe: {router_topk: 9}}")
                .find("a token cannot pass 9 of 8 experts"),
            std::string::npos);
  EXPECT_NE(
      refusal("model: {base: llama3-8b, moe: {num_experts: 8}}").find("'router_topk' is missing"),
      std::string::npos);
  EXPECT_NE(
      refusal("model: {base: llama3-8b, normalization: RMSNom}").find("did you mean 'RMSNorm'?"),
      std::string::npos);
  EXPECT_NE(refusal("model: {family: llama, num_layers: 2, hidden_size: 65, "
                    "num_attention_heads: 4, vocab_size: 9}")
                .find("give 'kv_channels'"),
            std::string::npos);
  EXPECT_NE(
      refusal("model: {base: llama3-8b, hidden_size: 0}").find("expected a whole number from 1 to"),
      std::string::npos);
}

}  // namespace
}  // namespace pipesim::model_test
