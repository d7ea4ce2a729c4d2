#include "models/layout.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "sim/core/error.h"

namespace pipesim {
namespace {

// Decoder layers one after the other, the embedding before and the rest behind them.
Layout closed(const Transformer& model, std::span<const int> layers_of_stage) {
  Layout layout;
  int first = 0;
  for (const int layers : layers_of_stage) {
    layout.stages.push_back({.first = first, .layers = layers});
    first += layers;
  }
  layout.stages.front().embedding = true;
  layout.stages.back().output = true;
  layout.stages.back().mtp = model.mtp_layers;
  return layout;
}

std::string does_not_divide(const Transformer& model, int layers, const char* among, int parts) {
  return fmt::format(
      "{} layers of {} do not divide among {} {}: list them (num_layers_per_stage), let the "
      "embedding and the loss count as layers (account_for_embedding_in_pipeline_split, "
      "account_for_loss_in_pipeline_split), or take 'balance'",
      layers, model.name, parts, among);
}

// The layers of every device, as Megatron's sizes say, to be shared by its chunks.
std::vector<int> layers_of_devices(const Transformer& model, int devices, const EvenSplit& split) {
  std::vector<int> layers(devices, 0);
  int left = model.num_layers;
  int others = devices;
  const auto take = [&](const std::optional<int>& given, int& of) {
    if (!given) return;
    of = *given;
    left -= of;
    --others;
  };
  take(split.first_device, layers.front());
  if (devices > 1) take(split.last_device, layers.back());
  if (left < 0) {
    throw InfeasibleError(fmt::format("first and last device are to take {} layers, but {} has {}",
                                      model.num_layers - left, model.name, model.num_layers));
  }
  if (others == 0 ? left != 0 : left % others != 0) {
    throw InfeasibleError(does_not_divide(model, left, "devices", others));
  }
  for (int device = 0; device < devices; ++device) {
    const bool first = device == 0 && split.first_device;
    const bool last = device == devices - 1 && devices > 1 && split.last_device;
    if (!first && !last) layers[device] = left / others;
  }
  return layers;
}

std::vector<int> split_by_device(const Transformer& model, const Placement& placement,
                                 const EvenSplit& split) {
  if (placement.directions() > 1) {
    throw InfeasibleError(
        "with two directions every device holds stages of both ends: the layers of the first and "
        "last device cannot be given (num_layers_per_stage can)");
  }
  const auto layers = layers_of_devices(model, placement.devices(), split);
  std::vector<int> of_stage;
  for (int vs = 0; vs < placement.virtual_stages(); ++vs) {
    const int of_device = layers[placement.device(vs)];
    const int chunks = placement.chunks(placement.device(vs));
    if (of_device % chunks != 0) {
      throw InfeasibleError(does_not_divide(model, of_device, "chunks", chunks));
    }
    of_stage.push_back(of_device / chunks);
  }
  return of_stage;
}

}  // namespace

KindCounts count_recomputed(const Transformer& model, const StageLayers& stage,
                            const RecomputedLayers& layers) {
  KindCounts counts{};
  const KindCounts held = count_layers(model, stage);
  if (layers.all_behind()) {
    counts = held;
    for (const LayerKind kind : kLayerKinds) {
      if (!is_layer(kind)) counts[kind] = 0;
    }
  } else {
    for (int i = 0; i < stage.layers; ++i) {
      if (layers.has(i)) ++counts[layer_kind(model, stage.first + i)];
    }
  }
  counts[LayerKind::kEncoder] = layers.of_encoder() ? held[LayerKind::kEncoder] : 0;
  return counts;
}

bool embeds_again(const Transformer& model, const StageLayers& stage) {
  if (!model.cross) return false;
  const int decoder = model.cross->encoder_layers;
  return stage.first <= decoder && decoder < stage.first + stage.layers;
}

bool decodes(const Transformer& model, const StageLayers& stage) {
  return model.cross && stage.first + stage.layers > model.cross->encoder_layers;
}

std::string fault_of(const Transformer& model, const Layout& layout, bool several) {
  if (!model.cross || layout.stages.size() == 1) return "";
  if (several) {
    return fmt::format("{} encodes and decodes: its pipeline has one stage a device, as Megatron's",
                       model.name);
  }
  for (const StageLayers& stage : layout.stages) {
    if (stage.first >= model.cross->encoder_layers || !decodes(model, stage)) continue;
    return fmt::format(
        "a stage holds layers of {}'s encoder and of its decoder: list those of each stage so that "
        "none holds both (num_layers_per_stage)",
        model.name);
  }
  return "";
}

KindCounts count_layers(const Transformer& model, const StageLayers& stage) {
  KindCounts counts = count_layers(model, stage.first, stage.layers);
  counts[LayerKind::kEmbedding] = stage.embedding ? 1 : 0;
  counts[LayerKind::kOutput] = stage.output ? 1 : 0;
  counts[LayerKind::kMtp] = stage.mtp;
  counts[LayerKind::kEncoder] = stage.embedding && model.encoder ? model.encoder->num_layers : 0;
  counts[LayerKind::kDecoderEmbedding] = embeds_again(model, stage) ? 1 : 0;
  return counts;
}

std::vector<LayerKind> layer_kinds(const Transformer& model, const StageLayers& stage) {
  std::vector<LayerKind> kinds;
  for (int i = 0; i < stage.layers; ++i) kinds.push_back(layer_kind(model, stage.first + i));
  kinds.insert(kinds.end(), stage.mtp, LayerKind::kMtp);
  return kinds;
}

std::vector<StageLayers> stages_of(const Layout& layout, const Placement& placement, int device) {
  std::vector<StageLayers> stages;
  for (int chunk = 0; chunk < placement.chunks(device); ++chunk) {
    stages.push_back(layout.stages[placement.model_stage(placement.virtual_stage(device, chunk))]);
  }
  return stages;
}

bool same_kinds(const Transformer& model, const StageLayers& a, const StageLayers& b) {
  if (a.layers != b.layers || a.mtp != b.mtp || a.embedding != b.embedding ||
      a.output != b.output || embeds_again(model, a) != embeds_again(model, b)) {
    return false;
  }
  int same = 0;
  while (same < a.layers &&
         layer_kind(model, a.first + same) == layer_kind(model, b.first + same)) {
    ++same;
  }
  return same == a.layers;
}

bool same_kinds(const Transformer& model, const Layout& layout, const Placement& placement, int a,
                int b) {
  if (placement.chunks(a) != placement.chunks(b)) return false;
  const auto stage = [&](int device, int chunk) -> const StageLayers& {
    return layout.stages[placement.model_stage(placement.virtual_stage(device, chunk))];
  };
  int same = 0;
  while (same < placement.chunks(a) && same_kinds(model, stage(a, same), stage(b, same))) ++same;
  return same == placement.chunks(a);
}

Layout even_layout(const Transformer& model, const Placement& placement, const EvenSplit& split) {
  const bool counts = split.count_embedding || split.count_loss;
  if (split.first_device || split.last_device) {
    if (counts) {
      throw InfeasibleError(
          "either the embedding and the loss count as layers, or the first and last device have "
          "numbers of their own");
    }
    return closed(model, split_by_device(model, placement, split));
  }
  const int stages = placement.model_stages();
  const int units = model.num_layers + (split.count_embedding ? 1 : 0) + (split.count_loss ? 1 : 0);
  const int more = units % stages;
  // One device has all layers, however its chunks share them.
  if (more != 0 && placement.devices() > 1) {
    throw InfeasibleError(does_not_divide(model, units, "stages", stages));
  }
  std::vector<int> of_stage(stages, units / stages);
  for (int stage = 0; stage < more; ++stage) ++of_stage[stage];
  of_stage.front() -= split.count_embedding ? 1 : 0;
  of_stage.back() -= split.count_loss ? 1 : 0;
  if (of_stage.front() < 0 || of_stage.back() < 0) {
    throw InfeasibleError(fmt::format("{} has too few layers for one stage", model.name));
  }
  return closed(model, of_stage);
}

Layout listed_layout(const Transformer& model, std::span<const int> layers_of_stage) {
  const long sum = std::accumulate(layers_of_stage.begin(), layers_of_stage.end(), 0L);
  if (sum != model.num_layers) {
    throw InfeasibleError(
        fmt::format("the stages list {} layers, but {} has {}", sum, model.name, model.num_layers));
  }
  return closed(model, layers_of_stage);
}

LayerSeconds layer_seconds(const Transformer& model, const EnumArray<LayerKind, Seconds>& of) {
  const auto mean = [&](int first, int layers) {
    const KindCounts counts = count_layers(model, first, layers);
    Seconds sum;
    for (const LayerKind kind : kDecoderKinds) {
      const int number = counts[kind];
      if (number == layers) return of[kind];
      if (number > 0) sum += 1.0 * number * of[kind];
    }
    return layers > 0 ? sum / layers : Seconds(0);
  };
  const int leading = leading_layers(model);
  LayerSeconds seconds;
  seconds.embedding = of[LayerKind::kEmbedding];
  if (model.encoder) {
    seconds.embedding += 1.0 * model.encoder->num_layers * of[LayerKind::kEncoder];
  }
  seconds.dense = mean(0, leading);
  seconds.moe = mean(leading, model.num_layers - leading);
  seconds.output = of[LayerKind::kOutput];
  if (model.mtp_layers > 0) seconds.mtp = of[LayerKind::kMtp] + seconds.output;
  return seconds;
}

Seconds stage_seconds(const Transformer& model, const StageLayers& stage,
                      const LayerSeconds& seconds) {
  const int leading = std::clamp(leading_layers(model) - stage.first, 0, stage.layers);
  return (stage.embedding ? 1 : 0) * seconds.embedding + leading * seconds.dense +
         (stage.layers - leading) * seconds.moe + stage.mtp * seconds.mtp +
         (stage.output ? 1 : 0) * seconds.output;
}

}  // namespace pipesim
