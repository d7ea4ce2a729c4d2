// What a scenario says of the vocabulary: where it stands, and given costs and bytes of a share.
#pragma once

#include "sim/scenario/scenario.h"
#include "sim/scenario/yaml.h"

namespace pipesim {

// A placement, or a map {placement: ...}. InputError otherwise.
VocabularyPlacement read_vocabulary(const YamlValue& value);

// The keys of `cost` and `memory` that speak of a device's share of a sharded vocabulary: one value
// or one per device. Without a sharded one they are not looked for, so that they are unknown keys.
void read_vocabulary_cost(YamlMap& map, const Scenario& scenario, GivenCost& cost);
void read_vocabulary_memory(YamlMap& map, const Scenario& scenario, GivenMemory& memory);

}  // namespace pipesim
