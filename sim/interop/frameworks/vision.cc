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
  const bool adapted = std::ranges::any_of(
      draft.memory, [](const auto& entry) { return entry.first == "lora_rank"; });
  if (adapted) {
    draft.not_modelled.emplace_back("the projector trains beside the adapters");
  } else if (model) {
    put_flag(draft.memory, "frozen", true);
  }
}

}  // namespace

void put_vision(Settings& settings, Draft& draft) {
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
