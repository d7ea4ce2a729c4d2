// NeMo's models that see: the encoder by its name, the projector, and what is frozen.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>

#include "models/transformer.h"
#include "sim/core/error.h"
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

// Megatron-LM's LLaVA: 7 tiles of 1024 patches, four of which become a token, before 3,200 tokens.
const std::string kLlava =
    "run train.py --world-size 8 --vocab-size 32000 --micro-batch-size 1 --global-batch-size 16 "
    "--position-embedding-type rope --swiglu --disable-bias-linear --normalization RMSNorm --bf16 "
    "--num-layers 4 --hidden-size 1024 --num-attention-heads 8 --ffn-hidden-size 512 "
    "--tensor-model-parallel-size 8 --seq-length 256 --decoder-seq-length 3200 --img-h 448 "
    "--img-w 448 --patch-dim 14 --pixel-shuffle --use-tiling --max-num-tiles 6 --use-thumbnail "
    "--disable-vision-class-token --freeze-ViT --language-model-type yi-34b ";

Draft llava(const std::string& flags) {
  return megatron_draft(read_arguments("run.sh", kLlava + flags), "dgx-h100");
}

TEST(Vision, PutsTheEncoderOfMegatronsLlava) {
  const Draft draft = llava("--vision-model-type internvit");
  EXPECT_TRUE(draft.stops.empty() && draft.missing.empty()) << summary_of(draft);
  const Modelled made = *read_scenario(YamlSource("imported.yaml", scenario_of(draft))).modelled;
  const Encoder& encoder = *made.model.encoder;
  EXPECT_EQ(encoder.num_layers, 45);
  EXPECT_EQ(encoder.num_attention_heads, 32) << "25, a multiple of 8 tensor ranks";
  EXPECT_EQ(encoder.patches, 1024);
  EXPECT_EQ(encoder.merged, 4);
  EXPECT_EQ(encoder.images, 7);
  EXPECT_EQ(encoder.projector_size, 20480);
  EXPECT_TRUE(encoder.frozen);
  EXPECT_FALSE(encoder.replicated || made.context.frozen);
  EXPECT_EQ(made.context.seq_length, 3200);
}

TEST(Vision, TakesMegatronsSidesWhereAScriptSaysNone) {
  const std::string sides = "--img-h 448 --img-w 448 --patch-dim 14 ";
  std::string without = kLlava + "--vision-model-type siglip";
  without.replace(without.find(sides), sides.size(), "");
  const Draft draft = megatron_draft(read_arguments("run.sh", without), "dgx-h100");
  const Modelled made = *read_scenario(YamlSource("imported.yaml", scenario_of(draft))).modelled;
  EXPECT_EQ(made.model.encoder->patches, 14 * 14);
  EXPECT_EQ(made.model.encoder->inputs, 3 * 16 * 16);
}

TEST(Vision, PutsImagesBeforeTheTextWhereNoLengthOfBothIsSaid) {
  std::string text = kLlava + "--vision-model-type internvit";
  text.replace(text.find("256 --decoder-seq-length 3200"), 29, "2048");
  const Draft draft = megatron_draft(read_arguments("run.sh", text), "dgx-h100");
  const Scenario made = read_scenario(YamlSource("imported.yaml", scenario_of(draft)));
  EXPECT_EQ(made.modelled->context.seq_length, 2048 + 256);
}

TEST(Vision, SaysWhichClassTokensItLeavesOut) {
  const auto said = [](const Draft& draft, const std::string& what) {
    return std::ranges::any_of(draft.not_modelled, [&](const std::string& each) {
      return each.find(what) != std::string::npos;
    });
  };
  EXPECT_TRUE(said(llava("--vision-model-type radio"),
                   "class tokens of the encoder: 8 beside 1024 patches of an image"));
  EXPECT_FALSE(said(llava("--vision-model-type siglip"), "class tokens"));
  EXPECT_FALSE(said(llava("--vision-model-type radio"), "which the model takes too"));
  const std::string flag = "--disable-vision-class-token ";
  std::string kept = kLlava;
  kept.replace(kept.find(flag), flag.size(), "");
  EXPECT_TRUE(said(megatron_draft(read_arguments("run.sh", kept), "dgx-h100"),
                   "1 beside 1024 patches of an image, which the model takes too"));
}

TEST(Vision, StopsAtAnEncoderOrImagesThatAreNotKnown) {
  EXPECT_EQ(llava("--vision-model-type pixtral-vit").stops.at(0).first, "vision_model_type");
  EXPECT_EQ(llava("--language-model-type other").stops.at(0).first, "language_model_type");
  EXPECT_EQ(llava("--dynamic-resolution").stops.at(0).first, "dynamic_resolution");
}

// Megatron-LM's pretrain_vlm.py, whose program its files of arguments do not name.
TEST(Vision, RefusesImagesWithoutALanguageModel) {
  const auto draft = [](const std::string& side) {
    return megatron_draft(
        read_yaml_settings("megatron", "c.yaml",
                           "MODEL_ARGS: {--num-layers: 4, --hidden-size: 64, "
                           "--num-attention-heads: 4, --patch-dim: 14, --img-h: " +
                               side + "}\n"),
        "");
  };
  EXPECT_THROW(draft("336"), InputError);
  EXPECT_NO_THROW(draft("224")) << "a list of all arguments";
}

TEST(Vision, RecomputesMegatronsEncoderWhereItIsTold) {
  const auto recomputed = [](const std::string& flags) {
    const Draft draft = llava("--freeze-ViT false --vision-model-type internvit " + flags);
    EXPECT_TRUE(draft.stops.empty() && draft.missing.empty()) << summary_of(draft);
    const Scenario made = read_scenario(YamlSource("imported.yaml", scenario_of(draft)));
    return made.schedules[0].recompute->layers;
  };
  const std::string full = "--recompute-granularity full --recompute-method uniform ";
  EXPECT_EQ(recomputed(full), (RecomputedLayers{.encoder = false}));
  EXPECT_EQ(recomputed(full + "--recompute-vision"), RecomputedLayers{});
  const std::string block =
      "--recompute-granularity full --recompute-method block --recompute-num-layers 2 ";
  EXPECT_EQ(recomputed(block), (RecomputedLayers{.first = 2}));
  EXPECT_EQ(recomputed(block + "--recompute-vision"),
            (RecomputedLayers{.first = 2, .encoder = true}));
  EXPECT_EQ(recomputed("--recompute-activations"), (RecomputedLayers{.encoder = false}));
}

}  // namespace
}  // namespace pipesim::vision_test
