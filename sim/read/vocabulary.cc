#include "sim/read/vocabulary.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipesim {
namespace {

VocabularyPlacement read_placement(const YamlValue& value) {
  static const std::vector<std::string> kNames(kVocabularyPlacements.begin(),
                                               kVocabularyPlacements.end());
  const auto found = std::ranges::find(kNames, value.choice(kNames));
  return static_cast<VocabularyPlacement>(found - kNames.begin());
}

// One value for all devices, or a list of one for each.
template <class Read>
auto of_devices(const YamlValue& value, const Scenario& scenario, Read read) {
  std::vector<decltype(read(value))> values;
  if (!value.is_list()) {
    values.push_back(read(value));
    return values;
  }
  for (const YamlValue& each : value.list()) values.push_back(read(each));
  if (values.size() != 1 && !std::cmp_equal(values.size(), scenario.parallel.pipeline)) {
    value.fail(fmt::format("expected one value or one per device ({}), not {}",
                           scenario.parallel.pipeline, values.size()));
  }
  return values;
}

}  // namespace

VocabularyPlacement read_vocabulary(const YamlValue& value, LayerSplit& split) {
  std::optional<VocabularyPlacement> placement;
  if (value.is_map()) {
    YamlMap map(value);
    placement = read_placement(
        map.require("placement", "first_last, redistributed, interlaced, vocab-1 or vocab-2"));
    map.finish();
  } else {
    placement = read_placement(value);
  }
  if (placement == VocabularyPlacement::kRedistributed) {
    if (split.where.line > 0) {
      value.fail("'redistributed' splits the layers, but parallel says how to split them");
    }
    split.way = LayerSplit::Way::kRedistributed;
    split.where = value.where();
  }
  return *placement;
}

void read_collectives(const YamlValue& value, const Scenario& scenario, GivenCost& cost) {
  if (!value.is_map()) {
    cost.collective = value.seconds();
    return;
  }
  if (!is_sharded(scenario.vocabulary)) {
    value.fail("a map is of the collectives of a shared vocabulary (vocabulary.placement)");
  }
  YamlMap map(value);
  cost.barriers = BarrierSeconds{};
  for (size_t each = 0; each < kVocabularyCollectives.size(); ++each) {
    const std::string name(kVocabularyCollectives[each]);
    (*cost.barriers)[static_cast<Barrier>(each)] =
        map.require(name, "seconds of this collective, such as '0.2 ms', or 0").seconds();
  }
  map.finish();
}

void read_vocabulary_cost(YamlMap& map, const Scenario& scenario, GivenCost& cost) {
  if (!is_sharded(scenario.vocabulary)) return;
  const auto seconds = [&](const char* key, const char* what) {
    return of_devices(map.require(key, what), scenario,
                      [](const YamlValue& each) { return each.seconds(); });
  };
  cost.output_forward = seconds("output_forward", "seconds of S, of a device's vocabulary");
  cost.output_backward = seconds("output_backward", "seconds of T, of a device's vocabulary");
  cost.input_forward = seconds("input_forward", "seconds of IF, of a device's vocabulary");
  cost.input_backward = seconds("input_backward", "seconds of IB, of a device's vocabulary");
}

void read_vocabulary_memory(YamlMap& map, const Scenario& scenario, GivenMemory& memory) {
  if (!is_sharded(scenario.vocabulary)) return;
  if (const auto given = map.find("output_activation")) {
    memory.output_activation =
        of_devices(*given, scenario, [](const YamlValue& each) { return each.bytes(); });
  }
}

}  // namespace pipesim
