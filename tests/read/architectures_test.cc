#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <string>

#include "models/layer_parameters.h"
#include "sim/read/model.h"

namespace pipesim::architectures_test {
namespace {

const YamlSource& rows() {
  static const YamlSource kRows = YamlSource::from_file(
      std::string(PIPESIM_SOURCE_DIR) + "/tests/read/data/hf/architectures.yaml", {});
  return kRows;
}

std::string refusal(const std::string& config) {
  const YamlSource source("config.json", config);
  try {
    (void)read_hf_config(source.root(), "x");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

const std::string kLlama =
    "architectures: [LlamaForCausalLM], num_hidden_layers: 4, hidden_size: 64, "
    "intermediate_size: 64, vocab_size: 64, num_attention_heads: 4";

constexpr double kTolerance = 0.001;  // of the shapes' own counts

void expect_counts(const Transformer& model, double total, double activated) {
  EXPECT_NEAR(total_parameters(model) / 1e9 / total, 1, kTolerance) << model.name;
  EXPECT_NEAR(total_activated_parameters(model) / 1e9 / activated, 1, kTolerance) << model.name;
}

TEST(Architectures, HaveTheParametersThatTheirShapesAreCountedToHave) {
  int read = 0;
  for (const auto& [name, row] : rows().root().entries()) {
    YamlMap map(row);
    (void)map.require("source", "where it was read");
    const double total = map.require("total", "billions").number(0, 1e5);
    const double activated = map.require("activated", "billions").number(0, 1e5);
    expect_counts(read_hf_config(map.require("config", "the file"), name), total, activated);
    // The catalogue has the same.
    expect_counts(find_model(name, {}), total, activated);
    map.finish();
    ++read;
  }
  EXPECT_EQ(read, 49);
}

TEST(Architectures, HaveTheParametersOfTheirPublishedWeights) {
  const YamlSource published = YamlSource::from_file(
      std::string(PIPESIM_SOURCE_DIR) + "/tests/read/data/hf/published.yaml", {});
  for (const auto& [name, row] : published.root().entries()) {
    YamlMap map(row);
    const double total = map.require("total", "billions").number(0, 1e5);
    const Transformer read = read_hf_config(map.require("config", "the file"), name);
    EXPECT_NEAR(total_parameters(read) / 1e9 / total, 1, 0.005) << name;
    map.finish();
  }
}

// By their reports, the embedding left out of what is activated where they do so.
TEST(Architectures, HaveThePublishedActivatedParameters) {
  const auto activated = [](const char* name, bool embedding) {
    const Transformer model = find_model(name, {});
    const double table = 1.0 * model.vocab_size * model.hidden_size;
    return (total_activated_parameters(model) - (embedding ? 0 : table)) / 1e9;
  };
  EXPECT_NEAR(activated("jamba-1.5-large", true), 94, 0.5);
  EXPECT_NEAR(activated("jamba-1.5-mini", true), 12, 0.5);
  EXPECT_NEAR(activated("kimi-k3", false), 104, 0.5);
  EXPECT_NEAR(activated("deepseek-v4-pro", false), 49, 0.5);
  EXPECT_NEAR(activated("deepseek-v4-flash", false), 13, 0.5);
}

TEST(Architectures, OfPublishedTotalsAreInTheCatalogueAsTheirFilesSay) {
  const YamlSource published = YamlSource::from_file(
      std::string(PIPESIM_SOURCE_DIR) + "/tests/read/data/hf/published.yaml", {});
  int compared = 0;
  for (const auto& [name, row] : published.root().entries()) {
    const auto entry = std::ranges::find(catalogue_models(), name, &Transformer::name);
    if (entry == catalogue_models().end()) continue;
    Transformer file = read_hf_config(YamlMap(row).require("config", "the file"), name);
    file.source = entry->source;
    file.encoder.reset();
    // A file does not say how many tokens are decoded.
    if (file.cross) file.cross->decoder_seq_length = entry->cross->decoder_seq_length;
    EXPECT_TRUE(file == *entry) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 36);
}

TEST(Architectures, RepeatTheirLayersOverTheWholeModel) {
  const auto pattern = [](const std::string& layers) {
    const YamlSource source("config.json",
                            "{architectures: [JambaForCausalLM], num_hidden_layers: " + layers +
                                ", hidden_size: 64, intermediate_size: 64, vocab_size: 64, "
                                "num_attention_heads: 4}");
    return read_hf_config(source.root(), "x").layer_pattern;
  };
  EXPECT_EQ(pattern("16"), "RRRRGRRR");
  EXPECT_EQ(pattern("12"), "RRRRGRRR");
  EXPECT_EQ(pattern("8"), "RRRRG");
}

TEST(Architectures, MayHaveEntriesBehindThoseOfTheirLayers) {
  const std::string v4 =
      "architectures: [DeepseekV4ForCausalLM], num_hidden_layers: 3, hidden_size: 64, "
      "vocab_size: 64, num_attention_heads: 8, moe_intermediate_size: 64, n_routed_experts: 4, "
      "num_experts_per_tok: 2, num_nextn_predict_layers: 1, compress_ratios: ";
  const YamlSource source("config.json", "{" + v4 + "[128, 4, 128, 0]}");
  EXPECT_EQ(read_hf_config(source.root(), "x").layer_pattern, "YX");
  EXPECT_NE(refusal("{" + v4 + "[128, 4, 128, 0, 0]}").find("each of 3 layers, not 5"),
            std::string::npos);
}

// Llama-Nemotron: parts of layers in place of layers, sizes in the order in which they come.
TEST(Architectures, MayHaveLayersThatEachHaveAShape) {
  const auto deci = [](const std::string& blocks) {
    return "{architectures: [DeciLMForCausalLM], num_hidden_layers: 3, hidden_size: 768, "
           "vocab_size: 64, num_attention_heads: 8, block_configs: [" +
           blocks + "]}";
  };
  const std::string whole = "{attention: {n_heads_in_group: 4}, ffn: {ffn_mult: 1.0}}";
  const YamlSource source(
      "config.json",
      deci(whole + ", {attention: {no_op: true, n_heads_in_group: null}, ffn: {ffn_mult: 1.6}}, " +
           "{attention: {no_op: true}, ffn: {no_op: true}}"));
  const Transformer read = read_hf_config(source.root(), "x");
  EXPECT_EQ(read.num_layers, 3);
  EXPECT_EQ(read.layer_pattern, "*ab");
  EXPECT_EQ(read.num_query_groups, 2);
  // Two thirds of 768 and of 1228, rounded up to 256.
  EXPECT_EQ(read.mlp_sizes[0], 512);
  EXPECT_EQ(read.mlp_sizes[1], 1024);
  const auto says = [&](const std::string& block, const std::string& text) {
    const std::string message = refusal(deci(whole + ", " + block));
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  says("{attention: {n_heads_in_group: 2}, ffn: {ffn_mult: 1.0}}",
       "groups of 2 heads, and of 4 in layers before");
  says("{attention: {replace_with_linear: true}, ffn: {ffn_mult: 1.0}}",
       "a matrix in place of attention is not modelled");
  says("{attention: {n_heads_in_group: 4, window_length: 8}, ffn: {ffn_mult: 1.0}}",
       "window_length: a layer's part with this is not modelled");
}

TEST(Architectures, MayHaveLayersWithoutExpertsBehindThoseWithThem) {
  const auto step = [](const std::string& layers) {
    const YamlSource source(
        "config.json",
        "{architectures: [Step3TextForCausalLM], num_hidden_layers: 6, hidden_size: 64, "
        "intermediate_size: 64, vocab_size: 64, num_attention_heads: 4, share_q_dim: 32, "
        "moe_num_experts: 4, moe_top_k: 2, moe_intermediate_size: 64, share_expert_dim: 64, "
        "moe_layers_enum: " +
            layers + "}");
    return read_hf_config(source.root(), "x");
  };
  const Transformer read = step("'2,3,4'");
  EXPECT_EQ(read.q_rank, 32);
  EXPECT_EQ(read.experts->first_dense_layers, 2);
  EXPECT_EQ(read.experts->last_dense_layers, 1);
  EXPECT_EQ(step("[2, 3, 4]"), read);
  EXPECT_EQ(step("[1, 3]").experts->every, 2);
  EXPECT_EQ(step("[1, 3]").experts->last_dense_layers, 1);
  EXPECT_EQ(step("[1, 3, 5]").experts->last_dense_layers, 0);
}

// Ling and Ring 2.5, whose published 1 T and 63 B activated these sizes have.
TEST(Architectures, MayHaveLatentAttentionBesideLightning) {
  const std::string ling =
      "architectures: [BailingMoeV2_5ForCausalLM], hidden_size: 8192, intermediate_size: 18432, "
      "moe_intermediate_size: 2048, num_attention_heads: 64, num_key_value_heads: 64, "
      "head_dim: 128, num_experts: 256, num_experts_per_tok: 8, num_shared_experts: 1, "
      "first_k_dense_replace: 4, layer_group_size: 8, kv_lora_rank: 512, q_lora_rank: 1536, "
      "qk_rope_head_dim: 64, qk_nope_head_dim: 128, v_head_dim: 128, vocab_size: 157184, "
      "num_hidden_layers: ";
  const YamlSource source("config.json", "{" + ling + "80}");
  const Transformer read = read_hf_config(source.root(), "x");
  EXPECT_EQ(read.layer_pattern, "RRRRRRRG");
  EXPECT_TRUE(read.latent);
  EXPECT_NEAR(total_parameters(read) / 1e12, 1.012, 0.001);
  EXPECT_NEAR(total_activated_parameters(read) / 1e9, 63.6, 0.1);
  EXPECT_NE(refusal("{" + ling + "84}").find("behind the last whole group"), std::string::npos);
}

TEST(Architectures, ThatAreNotModelledAreNamedWithTheirKeys) {
  const auto says = [](const std::string& config, const std::string& text) {
    const std::string message = refusal("{architectures: [" + config + "}");
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  says("Gemma3nForCausalLM]", "hidden_size_per_layer_input: embeddings of every layer");
  says("Zamba2ForCausalLM], num_mem_blocks: 2", "num_mem_blocks: blocks that layers far apart");
  says("RecurrentGemmaForCausalLM], lru_width: 64", "lru_width: gated linear recurrences");
  says("Phi3SmallForCausalLM], blocksparse_block_size: 64", "blocksparse_vert_stride");
  says("Lfm2ForCausalLM], conv_bias: true", "conv_bias: biases of a convolution");
}

// Models without a config.json, counted from their shapes by the same program.
TEST(Architectures, OfPapersHaveTheirTotals) {
  expect_counts(find_model("palm-540b", {}), 540.359, 540.359);
  expect_counts(find_model("mt-nlg-530b", {}), 529.601, 529.601);
  expect_counts(find_model("vit-22b", {}), 21.744, 21.744);
}

// But for what the catalogue's entries of earlier days leave out, which costs little: groups of
// experts and the part of a head that positions turn.
TEST(Architectures, AreInTheCatalogueAsTheirFilesSay) {
  for (const auto& [name, row] : rows().root().entries()) {
    YamlMap map(row);
    Transformer file = read_hf_config(map.require("config", "the file"), name);
    const Transformer entry = find_model(name, {});
    file.source = entry.source;
    if (file.experts) file.experts->groups = entry.experts->groups;
    if (file.experts) file.experts->groups_per_token = entry.experts->groups_per_token;
    if (name.starts_with("nemotron-4")) file.rotary_percent = entry.rotary_percent;
    if (file.latent) file.kv_channels = entry.kv_channels;
    EXPECT_TRUE(file == entry) << name;
  }
}

TEST(Architectures, RefuseAKeyThatMayCostAndNameTheKeyToWrite) {
  EXPECT_EQ(refusal("{" + kLlama +
                    ", bos_token_id: 1, num_labels: null, torch_dtype: bfloat16, "
                    "mlp_only_layers: []}"),
            "");
  const std::string window = refusal("{" + kLlama + ",\n window_of_heads: 512}");
  EXPECT_NE(window.find("config.json:2:2: window_of_heads: not understood"), std::string::npos)
      << window;
  EXPECT_NE(window.find("attention_window: ...}"), std::string::npos) << window;
  EXPECT_NE(refusal("{" + kLlama + ", moe_latent_size: 512}").find("moe: ...}"), std::string::npos);
  EXPECT_NE(refusal("{" + kLlama + ", hidden_act: tangent}").find("is not known; valid"),
            std::string::npos)
      << refusal("{" + kLlama + ", hidden_act: tangent}");
  // A scenario's own value replaces the file's.
  const YamlSource source("config.json", "{" + kLlama + ", window_of_heads: 512}");
  const std::vector<std::string> stated{"attention_window"};
  EXPECT_NO_THROW((void)read_hf_config(source.root(), "x", stated));
}

TEST(Architectures, NameAllThatIsNotUnderstoodAndAllThatIsMissingAtOnce) {
  const std::string several =
      refusal("{" + kLlama + ", moe_latent_size: 512, window_of_heads: 512, head_gates: 2}");
  EXPECT_NE(several.find("moe_latent_size: not understood, nor are window_of_heads, head_gates"),
            std::string::npos)
      << several;
  EXPECT_NE(several.find("{hf_config: FILE, moe: ..., attention_window: ..., num_attention_heads: "
                         "...}' beside the file, which then stand in their place"),
            std::string::npos)
      << several;
  const std::string missing = refusal("{architectures: [LlamaForCausalLM], hidden_size: 64}");
  EXPECT_NE(missing.find("'intermediate_size' is missing, and so is 'num_attention_heads', "
                         "'num_hidden_layers', 'vocab_size': expected a whole number"),
            std::string::npos)
      << missing;
}

TEST(Architectures, LeaveATowerOutThatTheyDoNotUnderstandAndSayIt) {
  const YamlSource source("config.json", "{" + kLlama + ", vision_config: {hidden_size: 64}}");
  const Transformer read = read_hf_config(source.root(), "x");
  EXPECT_FALSE(read.encoder);
  EXPECT_NE(read.source.find("config.json, without vision_config: 'image_size' is missing"),
            std::string::npos)
      << read.source;
}

TEST(Architectures, NameTheNearestAndTheMapWhereOneIsNotKnown) {
  const std::string near = refusal("{architectures: [Olmo9ForCausalLM]}");
  EXPECT_NE(near.find("did you mean 'OlmoForCausalLM'?"), std::string::npos) << near;
  EXPECT_NE(near.find("model: {base: NAME, ...}"), std::string::npos) << near;
}

TEST(Architectures, OfImagesHaveTheirEncoderInFront) {
  const auto read = [](const std::string& vision) {
    const YamlSource source("config.json",
                            "{architectures: [Llama4ForConditionalGeneration], "
                            "text_config: {num_hidden_layers: 48, hidden_size: 5120, "
                            "intermediate_size: 8192, num_attention_heads: 40, "
                            "num_key_value_heads: 8, head_dim: 128, "
                            "vocab_size: 202048}" +
                                vision + "}");
    return read_hf_config(source.root(), "x");
  };
  const Transformer text = read("");
  const Transformer both = read(
      ", vision_config: {num_hidden_layers: 34, hidden_size: 1408, num_attention_heads: 16, "
      "intermediate_size: 5632, image_size: 336, patch_size: 14, pixel_shuffle_ratio: 0.5, "
      "projector_output_dim: 4096}");
  EXPECT_FALSE(text.encoder);
  ASSERT_TRUE(both.encoder);
  EXPECT_EQ(both.encoder->patches, 576);
  EXPECT_EQ(both.encoder->merged, 4);
  const double layer = 4.0 * 1408 * 1408 + 2.0 * 1408 * 5632 + 9 * 1408 + 5632;
  const double ends = 1408.0 * (3 * 14 * 14 + 576 + 2) + 4096.0 * (4 * 1408 + 5120);
  EXPECT_NEAR(total_parameters(both) - total_parameters(text), 34 * layer + ends, 1e5);
  // Published as 109B, the encoder included.
  EXPECT_NEAR(total_parameters(both) / 109e9, 1, 0.005);
}

}  // namespace
}  // namespace pipesim::architectures_test
