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

}  // namespace

Recompute read_recompute(const YamlValue& value) {
  Recompute recompute;
  recompute.where = value.where();
  if (!value.is_map()) {
    recompute.granularity = read_granularity(value);
    return recompute;
  }
  YamlMap map(value);
  recompute.granularity =
      read_granularity(map.require("granularity", "none, selective, pointwise, full or modules"));
  for (const char* key : {"chunks", "method", "num_layers", "every"}) {
    const auto value = map.find(key);
    if (value && recompute.granularity != RecomputeGranularity::kFull) {
      value->fail("is of granularity 'full'");
    }
  }
  if (const auto chunks = map.find("chunks")) {
    recompute.chunks = static_cast<int>(chunks->integer(1, 1024));
  }
  read_layers(map, recompute.layers);
  map.finish();
  return recompute;
}

void settle_recompute(YamlMap& root, Scenario& scenario) {
  const auto given = root.find("recompute");
  const Recompute common = given ? read_recompute(*given) : Recompute{};
  for (ScheduleChoice& choice : scenario.schedules) {
    if (!choice.recompute) choice.recompute = common;
    const Recompute& recompute = *choice.recompute;
    if (recompute.granularity.of_modules() && !scenario.modelled) {
      throw InputError(recompute.where,
                       fmt::format("{} recomputation needs a model, which says what layers keep; "
                                   "'full' recomputes whole chunks ('chunks' says how many)",
                                   to_text(recompute.granularity)));
    }
    if (recompute.layers != RecomputedLayers{} && !scenario.modelled) {
      throw InputError(recompute.where, "layers that are recomputed need a model");
    }
    if (recompute.chunks.value_or(0) <= chunks_of(choice)) continue;
    throw InputError(recompute.where,
                     fmt::format("{} chunks are to recompute, but {} has {} per device",
                                 *recompute.chunks, choice.name, chunks_of(choice)));
  }
}

}  // namespace pipesim
