#include "sim/interop/frameworks/vision.h"

#include <algorithm>
#include <fmt/format.h>

#include "sim/core/data_folder.h"
#include "sim/core/letters.h"
#include "sim/read/yaml.h"

namespace pipesim {
namespace {

// The sizes of an entry of a file of the catalogue; none where it has no such name.
Section sizes_of(const std::string& file, const std::string& name) {
  const std::string path = data_folder("catalog") + "/" + file;
  const YamlSource source = YamlSource::from_file(path, {path, 0, 0, ""});
  Section sizes;
  for (const auto& [known, entry] : source.root().entries()) {
    if (known != name) continue;
    for (const auto& [key, size] : entry.entries()) sizes.emplace_back(key, size.text());
  }
  return sizes;
}

// Takes a number out of the sizes; `usual` where it is not among them.
long take_number(Section& sizes, std::string_view key, long usual) {
  const auto found = std::ranges::find(sizes, key, &Section::value_type::first);
  if (found == sizes.end()) return usual;
  const long number = std::stol(found->second);
  sizes.erase(found);
  return number;
}

struct KnownEncoder {
  Section shape;          // keys of a scenario; none where the name is not known
  long patch = 0;         // pixels along a side
  long class_tokens = 0;  // beside the patches of an image
};

KnownEncoder encoder_named(const std::string& name) {
  KnownEncoder encoder{.shape = sizes_of("encoders.yaml", name)};
  encoder.patch = take_number(encoder.shape, "patch_size", 0);
  encoder.class_tokens = take_number(encoder.shape, "class_tokens", 0);
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
  long matrices = 0;  // 0 where the name is not known
  long merged = 1;
  long size = 0;  // between two matrices; 0: the model's
};

Projector projector_named(const std::string& name) {
  Section sizes = sizes_of("projectors.yaml", name);
  return {.matrices = take_number(sizes, "matrices", 0),
          .merged = take_number(sizes, "merged_patches", 1),
          .size = take_number(sizes, "projector_size", 0)};
}

void put_projector(Settings& settings, long along, Draft& draft) {
  const std::string name = settings.text({"mm_cfg.mm_mlp_adapter_type"}).value_or("linear");
  const Projector projector = projector_named(name);
  if (projector.matrices == 0 || (projector.merged > 1 && along % 2 == 1)) {
    not_understood(draft, "mm_cfg.mm_mlp_adapter_type",
                   fmt::format("mm_cfg.mm_mlp_adapter_type {}, of {} patches a side", name, along));
    return;
  }
  if (projector.merged > 1) put(draft.model, "encoder.merged_patches", projector.merged);
  if (projector.matrices > 1) {
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
  if (settings.is_set({"freeze_ViT"})) put_flag(draft.model, "encoder.frozen", true);
  if (settings.is_set({"freeze_LM"})) put_flag(draft.memory, "frozen", true);
}

// Pixels of an image and of a patch along a side, where the script says none: Megatron-LM's
// _add_vision_args (megatron/training/arguments.py). The model's own 336 and 14 are never used.
constexpr long kImageSide = 224;
constexpr long kPatchSide = 16;

long patches_of_image(Settings& settings, long patch) {
  const long height = settings.number({"img_h"}, 1).value_or(kImageSide);
  const long width = settings.number({"img_w"}, 1).value_or(kImageSide);
  return height / patch * (width / patch);
}

// The encoder computes its class tokens, and the model takes them unless they are dropped.
void note_class_tokens(Settings& settings, long class_tokens, long patches, Draft& draft) {
  const bool dropped = settings.is_set({"disable_vision_class_token"});
  if (class_tokens == 0) return;
  draft.not_modelled.push_back(
      fmt::format("class tokens of the encoder: {} beside {} patches of "
                  "an image{}",
                  class_tokens, patches, dropped ? "" : ", which the model takes too"));
}

// Megatron-LM's first LLaVA has no decoder_seq_length: the tokens of an image come before those of
// seq_length.
void add_image_tokens(const Settings& settings, long tokens, Draft& draft) {
  const auto length = std::ranges::find(draft.batch, "seq_length", &Section::value_type::first);
  if (settings.has("decoder_seq_length") || length == draft.batch.end()) return;
  length->second = fmt::format("{}", std::stol(length->second) + tokens);
  draft.notes.push_back(fmt::format(
      "{} tokens of an image before those of seq_length, as without decoder_seq_length", tokens));
}

void put_llava(Settings& settings, const std::string& language, long tensor, Draft& draft) {
  constexpr long kColours = 3;
  const std::string vision = settings.text({"vision_model_type"}).value_or("clip");
  const KnownEncoder encoder = encoder_named("megatron/" + vision);
  const Projector projector = projector_named("megatron/" + language);
  if (encoder.shape.empty() || projector.matrices == 0) {
    not_understood(
        draft, encoder.shape.empty() ? "vision_model_type" : "language_model_type",
        fmt::format("vision_model_type {} before language_model_type {}", vision, language));
    return;
  }
  const long patch = settings.number({"patch_dim"}, 1).value_or(kPatchSide);
  const long patches = patches_of_image(settings, patch);
  put_own_encoder(encoder, tensor, draft);
  put(draft.model, "encoder.patches", patches);
  note_class_tokens(settings, encoder.class_tokens, patches, draft);
  put(draft.model, "encoder.patch_inputs", kColours * patch * patch);
  const bool shuffled = settings.is_set({"pixel_shuffle"});
  if (shuffled) put(draft.model, "encoder.merged_patches", 4);
  add_image_tokens(settings, shuffled ? patches / 4 : patches, draft);
  put(draft.model, "encoder.projector_size", projector.size);
  put_tiles(settings, draft);
  put_frozen_parts(settings, draft);
}

}  // namespace

void put_encoder_recompute(Settings& settings, Draft& draft) {
  const bool again = settings.is_set({"recompute_vision"});
  const bool trains =
      has_key(draft.model, "encoder.num_layers") && !has_key(draft.model, "encoder.frozen");
  std::string& text = draft.recompute;
  if (!settings.has("language_model_type") || !trains || text.empty()) return;
  const bool partial = text.starts_with('{');
  if (again && !partial) return;  // all of both
  const std::string rest = partial ? text.substr(1, text.size() - 2) : "granularity: " + text;
  text = fmt::format("{{{}, encoder: {}}}", rest, again ? "full" : "none");
}

namespace {

// Images without a named language model are those of Megatron-LM's pretrain_vlm.py. A side of 224
// pixels is any program's default.
void refuse_images(Settings& settings) {
  const Setting* side = settings.find({"img_h", "img_w"});
  if (side == nullptr || side->usual || side->text() == "224") return;
  throw InputError(side->where,
                   fmt::format("{} is of images behind an encoder of Megatron-LM's own: pipesim "
                               "simulates the training of a decoder, alone or behind a vision "
                               "encoder that language_model_type names",
                               side->name));
}

}  // namespace

void put_vision(Settings& settings, long tensor, Draft& draft) {
  if (const auto language = settings.text({"language_model_type"})) {
    if (!draft.model.empty()) put_llava(settings, *language, tensor, draft);
    return;
  }
  if (!settings.has("mm_cfg.vision_encoder.from_pretrained")) refuse_images(settings);
  const auto name = settings.text({"mm_cfg.vision_encoder.from_pretrained"});
  if (!name || draft.model.empty()) return;
  constexpr long kColours = 3;
  const auto [shape, patch, class_tokens] = encoder_named(*name);
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
