#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <set>
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

TEST(Architectures, OfLayersBesideAttentionAreInTheCatalogue) {
  const YamlSource published = YamlSource::from_file(
      std::string(PIPESIM_SOURCE_DIR) + "/tests/read/data/hf/published.yaml", {});
  int compared = 0;
  for (const auto& [name, row] : published.root().entries()) {
    static const std::set<std::string> kNames{
        "jamba-1.5-large", "jamba-1.5-mini",  "falcon-h1-34b",     "falcon-h1-7b",
        "kimi-linear-48b", "deepseek-v4-pro", "deepseek-v4-flash", "kimi-k3"};
    if (!kNames.contains(name)) continue;
    Transformer file = read_hf_config(YamlMap(row).require("config", "the file"), name);
    file.source = find_model(name, {}).source;
    EXPECT_TRUE(file == find_model(name, {})) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 8);
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
  EXPECT_NE(refusal("{architectures: [DeciLMForCausalLM], num_hidden_layers: 4, hidden_size: 64, "
                    "vocab_size: 64, num_attention_heads: 4, block_configs: [{}]}")
                .find("a shape of their own are not modelled"),
            std::string::npos);
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
