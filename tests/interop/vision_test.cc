// NeMo's models that see: the encoder by its name, the projector, and what is frozen.
#include <gtest/gtest.h>
#include <string>

#include "models/transformer.h"
#include "sim/interop/frameworks/draft.h"
#include "sim/read/scenario.h"

namespace pipesim::vision_test {
namespace {

struct Said {
  std::string tower = "openai/clip-vit-large-patch14-336";
  std::string projector = "mlp2x_gelu";
  std::string model_frozen = "True";
  std::string more = {};
  int crop = 336;
  std::string patch = "patch_dim: 14, ";
};

Draft drafted(const Said& said) {
  const std::string text =
      "trainer: {precision: bf16, devices: 8, num_nodes: 1}\n"
      "model:\n"
      "  mm_cfg:\n"
      "    llm: {from_pretrained: a.nemo, freeze: " +
      said.model_frozen +
      ", model_type: llama_2}\n"
      "    vision_encoder: {from_pretrained: " +
      said.tower + ", from_hf: True, " + said.patch + "crop_size: [" + std::to_string(said.crop) +
      ", " + std::to_string(said.crop) +
      "], hidden_size: 1024, vision_select_layer: -2, class_token_length: 1, freeze: True}\n"
      "    pretrain_mm_mlp_adapter: null\n"
      "    mm_mlp_adapter_type: " +
      said.projector +
      "\n    use_im_start_end: False\n"
      "  num_layers: 4\n  hidden_size: 512\n  num_attention_heads: 8\n  encoder_seq_length: 4096\n"
      "  vocab_size: 32000\n  position_embedding_type: rope\n  micro_batch_size: 1\n"
      "  global_batch_size: 64\n  tensor_model_parallel_size: 2\n" +
      said.more;
  return megatron_draft(read_yaml_settings("megatron", "neva.yaml", text), "dgx-h100");
}

Modelled modelled(const Said& said) {
  const Draft draft = drafted(said);
  EXPECT_TRUE(draft.stops.empty() && draft.missing.empty()) << summary_of(draft);
  return *read_scenario(YamlSource("imported.yaml", scenario_of(draft))).modelled;
}

TEST(Vision, PutsTheEncoderThatTheNameSays) {
  const Modelled made = modelled({});
  const Encoder& encoder = *made.model.encoder;
  EXPECT_EQ(encoder.num_layers, 24);
  EXPECT_EQ(encoder.patches, 576);
  EXPECT_EQ(encoder.inputs, 588);
  EXPECT_EQ(encoder.merged, 1);
  EXPECT_EQ(encoder.projector_size, 512);
  EXPECT_EQ(encoder.images, 1);
  EXPECT_TRUE(encoder.frozen && encoder.replicated);
  EXPECT_TRUE(made.context.frozen);
  EXPECT_FALSE(modelled({.model_frozen = "False"}).context.frozen);
}

TEST(Vision, PutsThePatchesOfTheEncoder) {
  const std::string tower = "openai/clip-vit-base-patch32";
  const Modelled made = modelled({.tower = tower, .crop = 224, .patch = ""});
  EXPECT_EQ(made.model.encoder->patches, 49);
  EXPECT_EQ(made.model.encoder->inputs, 3072);
  EXPECT_EQ(drafted({.tower = tower, .crop = 224}).stops.at(0).first,
            "mm_cfg.vision_encoder.from_pretrained");
}

TEST(Vision, KnowsItsProjectors) {
  EXPECT_EQ(modelled({.projector = "linear"}).model.encoder->projector_size, 0);
  EXPECT_EQ(modelled({.projector = "mlp_downsample"}).model.encoder->merged, 4);
  EXPECT_EQ(drafted({.projector = "qformer"}).stops.at(0).first, "mm_cfg.mm_mlp_adapter_type");
  EXPECT_EQ(drafted({.projector = "mlp_downsample", .crop = 378}).stops.at(0).first,
            "mm_cfg.mm_mlp_adapter_type");
}

TEST(Vision, CountsFramesAsImages) {
  const std::string video = "  data: {media_type: video, num_frames: 4, splice_single_frame: ";
  EXPECT_EQ(modelled({.more = video + "null}\n"}).model.encoder->images, 4);
  EXPECT_EQ(modelled({.more = video + "first}\n"}).model.encoder->images, 1);
  EXPECT_EQ(modelled({.more = video + "false}\n"}).model.encoder->images, 4);
}

TEST(Vision, TrainsAdaptersWhereThereAreSome) {
  const Modelled made =
      modelled({.more = "  peft: {peft_scheme: lora, lora_tuning: {adapter_dim: 32}}\n"});
  EXPECT_EQ(made.context.adapter_rank, 32);
  EXPECT_FALSE(made.context.frozen);
}

TEST(Vision, StopsAtAnEncoderThatIsNotKnown) {
  EXPECT_EQ(drafted({.tower = "/data/tower"}).stops.at(0).first,
            "mm_cfg.vision_encoder.from_pretrained");
}

}  // namespace
}  // namespace pipesim::vision_test
