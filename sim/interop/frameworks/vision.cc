#include "sim/interop/frameworks/vision.h"

#include <algorithm>
#include <fmt/format.h>

#include "sim/core/data_folder.h"
#include "sim/core/letters.h"
#include "sim/read/yaml.h"

namespace pipesim {
namespace {

struct KnownEncoder {
  Section shape;   // keys of a scenario
  long patch = 0;  // pixels along a side
};

// The catalogue's encoder of that name; of no shape where it has none.
KnownEncoder encoder_named(const std::string& name) {
  const std::string path = data_folder("catalog") + "/encoders.yaml";
  const YamlSource source = YamlSource::from_file(path, {path, 0, 0, ""});
  KnownEncoder encoder;
  for (const auto& [known, sizes] : source.root().entries()) {
    if (known != name) continue;
    for (const auto& [key, size] : sizes.entries()) {
      if (key == "patch_size") {
        encoder.patch = std::stol(size.text());
      } else {
        encoder.shape.emplace_back(key, size.text());
      }
    }
  }
  return encoder;
}

// Patches along a side of the image that the encoder sees; 0 where that is not a square.
long patches_along(Settings& settings, long patch) {
  const Setting* crop = settings.find({"mm_cfg.vision_encoder.crop_size"});
  if (crop == nullptr || crop->values.size() != 2 || crop->values[0] != crop->values[1]) return 0;
  const std::string& side = crop->values[0];
  const bool number = side.find_first_not_of("0123456789") == std::string::npos;
  return number && side.size() < 6 ? std::stol(side) / patch : 0;
}

// Where the projector merges, it takes two by two patches.
struct Projector {
  std::string_view name;
  long merged = 1;
  bool two_matrices = true;
};

const Projector* find_projector(std::string_view name) {
  static constexpr Projector kProjectors[] = {
      {"linear", 1, false}, {"mlp2x_gelu"}, {"mlp_downsample", 4}};
  const auto* const found = std::ranges::find(kProjectors, name, &Projector::name);
  return found == std::end(kProjectors) ? nullptr : found;
}

void put_projector(Settings& settings, long along, Draft& draft) {
  const std::string name = settings.text({"mm_cfg.mm_mlp_adapter_type"}).value_or("linear");
  const Projector* projector = find_projector(name);
  if (projector == nullptr || (projector->merged > 1 && along % 2 == 1)) {
    not_understood(draft, "mm_cfg.mm_mlp_adapter_type",
                   fmt::format("mm_cfg.mm_mlp_adapter_type {}, of {} patches a side", name, along));
    return;
  }
  if (projector->merged > 1) put(draft.model, "encoder.merged_patches", projector->merged);
  if (projector->two_matrices) {
    put(draft.model, "encoder.projector_size", settings.number_or_usual("hidden_size"));
  }
}

// Frames of a video are images.
void put_images(Settings& settings, Draft& draft) {
  const bool video = settings.text({"media_type"}) == "video";
  const long frames = settings.number({"num_frames"}, 1).value_or(1);
  const auto one = settings.text({"splice_single_frame"});  // false, or which
  const bool single = one && small_letters(*one) != "false";
  const long images = video && !single ? frames : 1;
  if (images > 1) put(draft.model, "encoder.images", images);
  draft.notes.push_back(
      fmt::format("images of every sample: {}; text fills the rest of its sequence", images));
}

void put_frozen(Settings& settings, Draft& draft) {
  const bool encoder = settings.is_set({"mm_cfg.vision_encoder.freeze"});
  const bool model = settings.is_set({"mm_cfg.llm.freeze"});
  if (encoder) put_flag(draft.model, "encoder.frozen", true);
  if (has_key(draft.memory, "lora_rank")) {
    draft.not_modelled.emplace_back("the projector trains beside the adapters");
  } else if (model) {
    put_flag(draft.memory, "frozen", true);
  }
}

// ---- LLaVA of Megatron-LM (examples/multimodal, megatron/core/models/multimodal) ----

// Heads beyond the encoder's own make a multiple of the tensor ranks.
void put_own_encoder(const KnownEncoder& encoder, long tensor, Draft& draft) {
  for (const auto& [key, size] : encoder.shape) {
    const long heads = key == "num_attention_heads" ? std::stol(size) : 0;
    const long padded = (heads + tensor - 1) / tensor * tensor;
    put(draft.model, "encoder." + key, heads > 0 ? std::to_string(padded) : size);
    if (padded > heads) {
      draft.not_modelled.push_back(
          fmt::format("{} heads of the encoder in place of {}: narrower ones here", padded, heads));
    }
  }
}

// Images of a sample: tiles of a picture at most, and one of all of it, or frames.
void put_tiles(Settings& settings, Draft& draft) {
  const long tiles = settings.is_set({"use_tiling"})
                         ? settings.number({"max_num_tiles"}, 1).value_or(1) +
                               (settings.is_set({"use_thumbnail"}) ? 1 : 0)
                         : 1;
  (void)settings.find({"max_num_tiles", "use_thumbnail"});
  const long images = std::max(tiles, settings.number({"num_frames"}, 1).value_or(1));
  if (images > 1) put(draft.model, "encoder.images", images);
  draft.notes.push_back(fmt::format(
      "images of every sample: {}, the most; text fills the rest of its sequence", images));
}

// The encoder of its own stands undivided by sequence.
void put_frozen_parts(Settings& settings, Draft& draft) {
  const bool encoder = settings.is_set({"freeze_ViT"});
  const bool again = settings.is_set({"recompute_vision"});
  if (encoder) put_flag(draft.model, "encoder.frozen", true);
  if (settings.is_set({"freeze_LM"})) put_flag(draft.memory, "frozen", true);
  const bool whole = settings.text({"recompute_granularity"}).value_or("") == "full";
  if (whole && !encoder && !again) {
    not_understood(draft, "recompute_vision", "recompute of the model without its encoder");
  }
}

// Patches of an image; 0 where its sides are not known.
long patches_of_image(Settings& settings, long patch) {
  constexpr long kSide = 336;
  const long height = settings.number({"img_h"}, 1).value_or(kSide);
  const long width = settings.number({"img_w"}, 1).value_or(kSide);
  return height / patch * (width / patch);
}

void put_llava(Settings& settings, const std::string& language, long tensor, Draft& draft) {
  constexpr long kColours = 3;
  constexpr long kPatch = 14;
  const std::string vision = settings.text({"vision_model_type"}).value_or("clip");
  const KnownEncoder encoder = encoder_named("megatron/" + vision);
  const KnownEncoder projector = encoder_named("megatron/projector/" + language);
  if (encoder.shape.empty() || projector.shape.empty()) {
    not_understood(
        draft, encoder.shape.empty() ? "vision_model_type" : "language_model_type",
        fmt::format("vision_model_type {} before language_model_type {}", vision, language));
    return;
  }
  const long patch = settings.number({"patch_dim"}, 1).value_or(kPatch);
  (void)settings.find({"disable_vision_class_token"});  // a token of hundreds
  put_own_encoder(encoder, tensor, draft);
  put(draft.model, "encoder.patches", patches_of_image(settings, patch));
  put(draft.model, "encoder.patch_inputs", kColours * patch * patch);
  if (settings.is_set({"pixel_shuffle"})) put(draft.model, "encoder.merged_patches", 4);
  for (const auto& [key, size] : projector.shape) put(draft.model, "encoder." + key, size);
  put_tiles(settings, draft);
  put_frozen_parts(settings, draft);
}

}  // namespace

void put_vision(Settings& settings, long tensor, Draft& draft) {
  if (const auto language = settings.text({"language_model_type"})) {
    if (!draft.model.empty()) put_llava(settings, *language, tensor, draft);
    return;
  }
  const auto name = settings.text({"mm_cfg.vision_encoder.from_pretrained"});
  if (!name || draft.model.empty()) return;
  constexpr long kColours = 3;
  const auto [shape, patch] = encoder_named(*name);
  const bool same =
      settings.number({"mm_cfg.vision_encoder.patch_dim"}, 1).value_or(patch) == patch;
  const long along = same && patch > 0 ? patches_along(settings, patch) : 0;
  if (along == 0 || !settings.is_set({"mm_cfg.vision_encoder.from_hf"})) {
    not_understood(draft, "mm_cfg.vision_encoder.from_pretrained",
                   fmt::format("mm_cfg.vision_encoder.from_pretrained {}", *name));
    return;
  }
  (void)settings.find({"mm_cfg.vision_encoder.hidden_size"});  // the name says it
  for (const auto& [key, size] : shape) put(draft.model, "encoder." + key, size);
  put(draft.model, "encoder.patches", along * along);
  put(draft.model, "encoder.patch_inputs", kColours * patch * patch);
  put_flag(draft.model, "encoder.replicated", true);  // Hugging Face's knows no tensor ranks
  put_projector(settings, along, draft);
  put_images(settings, draft);
  put_frozen(settings, draft);
}

}  // namespace pipesim
