#include "sim/read/recompute.h"

#include <fmt/format.h>
#include <string>
#include <vector>

#include "sim/core/text.h"

namespace pipesim {
namespace {

const std::vector<std::string>& module_names() {
  static const std::vector<std::string> kNames(kRecomputeModules.begin(), kRecomputeModules.end());
  return kNames;
}

RecomputeGranularity read_granularity(const YamlValue& value) {
  if (value.is_list()) {
    RecomputeGranularity all;
    for (const YamlValue& each : value.list()) {
      all = all | *recompute_from(each.choice(module_names()));
    }
    return all;
  }
  if (const auto known = recompute_from(value.text())) return *known;
  std::vector<std::string> names(kRecomputeGranularities.begin(), kRecomputeGranularities.end());
  names.insert(names.end(), module_names().begin(), module_names().end());
  value.fail(fmt::format("'{}' is not known{}", value.text(), suggestion(value.text(), names)));
}

// Megatron-LM's recompute_method and recompute_num_layers: `block` takes so many layers of each
// stage, `uniform` all, so many of which keep one input together.
void read_layers(YamlMap& map, RecomputedLayers& read) {
  static const std::vector<std::string> kMethods{"uniform", "block"};
  const auto number = [](const YamlValue& value) {
    return static_cast<int>(value.integer(1, 1 << 16));
  };
  const auto method = map.find("method");
  const auto layers = map.find("num_layers");
  const bool block = method && method->choice(kMethods) == "block";
  if (block && !layers) method->fail("needs num_layers, those of each stage");
  if (layers) (block ? read.first : read.group) = number(*layers);
  if (const auto every = map.find("every")) read.every = number(*every);
}

void check_keys(YamlMap& map, RecomputeGranularity granularity) {
  const bool full = granularity == RecomputeGranularity::kFull;
  for (const char* key : {"chunks", "method", "num_layers", "every", "others"}) {
    const auto value = map.find(key);
    if (!value || full) continue;
    const std::string_view name = key;
    if (name == "chunks" || name == "others" || !granularity.of_modules()) {
      value->fail("is of granularity 'full'");
    }
  }
  const auto method = map.find("method");
  const auto layers = map.find("num_layers");
  const bool block = method && method->text() == "block";
  if (!full && !block && (layers || method)) {
    (layers ? *layers : *method)
        .fail("modules are made again layer by layer: expected method: block");
  }
}

// Modules of the layers that are not recomputed whole.
void read_others(YamlMap& map, Recompute& read) {
  const auto others = map.find("others");
  if (!others) return;
  read.layers.others = read_granularity(*others);
  if (read.layers.others == RecomputeGranularity::kNone) return;
  if (!read.layers.others.of_modules()) others->fail("expected modules");
  if (read.layers.all()) others->fail("there are none: expected method: block, or every");
  if (read.chunks) others->fail("stands beside 'chunks': give one of the two");
}

// The encoder's layers apart from the model's: `full` beside `none` recomputes them alone.
void read_encoder(YamlMap& map, Recompute& read) {
  static const std::vector<std::string> kWords{"none", "full"};
  const auto encoder = map.find("encoder");
  if (!encoder) return;
  const bool full = encoder->choice(kWords) == "full";
  if (full && read.granularity.of_modules()) {
    encoder->fail("stands beside modules, which are made again in all layers: expected none");
  }
  if (full && read.granularity == RecomputeGranularity::kNone) {
    read.granularity = RecomputeGranularity::kFull;
    read.layers.decoder = false;
  }
  read.layers.encoder = full;
}

// An encoder that does as the other layers is not named.
void forget_needless_encoder(Recompute& recompute) {
  std::optional<bool>& encoder = recompute.layers.encoder;
  const bool none = recompute.granularity == RecomputeGranularity::kNone;
  if (none || encoder == recompute.layers.all_behind()) encoder.reset();
}

}  // namespace

Recompute read_recompute(const YamlValue& value) {
  Recompute recompute;
  recompute.where = value.where();
  if (!value.is_map()) {
    recompute.granularity = read_granularity(value);
    return recompute;
  }
  YamlMap map(value);
  recompute.granularity = read_granularity(
      map.require("granularity", "none, selective, pointwise, full or a list of modules"));
  check_keys(map, recompute.granularity);
  if (const auto chunks = map.find("chunks")) {
    recompute.chunks = static_cast<int>(chunks->integer(1, 1024));
  }
  read_layers(map, recompute.layers);
  read_others(map, recompute);
  read_encoder(map, recompute);
  map.finish();
  return recompute;
}

void settle_recompute(YamlMap& root, Scenario& scenario) {
  const auto given = root.find("recompute");
  const Recompute common = given ? read_recompute(*given) : Recompute{};
  for (ScheduleChoice& choice : scenario.schedules) {
    if (!choice.recompute) choice.recompute = common;
    Recompute& recompute = *choice.recompute;
    if (recompute.granularity.of_modules() && !scenario.modelled) {
      throw InputError(recompute.where,
                       fmt::format("{} recomputation needs a model, which says what layers keep; "
                                   "'full' recomputes whole chunks ('chunks' says how many)",
                                   to_text(recompute.granularity)));
    }
    if (recompute.layers != RecomputedLayers{} && !scenario.modelled) {
      throw InputError(recompute.where, "layers that are recomputed need a model");
    }
    if (recompute.layers.encoder && !scenario.modelled->model.encoder) {
      throw InputError(recompute.where, "the model has no encoder to recompute apart");
    }
    forget_needless_encoder(recompute);
    if (recompute.chunks.value_or(0) <= chunks_of(choice)) continue;
    throw InputError(recompute.where,
                     fmt::format("{} chunks are to recompute, but {} has {} per device",
                                 *recompute.chunks, choice.name, chunks_of(choice)));
  }
}

}  // namespace pipesim
