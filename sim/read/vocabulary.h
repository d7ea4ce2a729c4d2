// A scenario's vocabulary: its placement, and given costs and bytes of a share.
#pragma once

#include "sim/read/yaml.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// A placement, or a map {placement: ...}. Redistributed, it says how layers are split; then
// InputError where `split` says how to split them.
VocabularyPlacement read_vocabulary(const YamlValue& value, LayerSplit& split);

// The keys of `cost` and `memory` that speak of a device's share of a sharded vocabulary: one value
// or one per device. Without a sharded one they are not looked for, so that they are unknown keys.
void read_vocabulary_cost(YamlMap& map, const Scenario& scenario, GivenCost& cost);
// `collective`: one number of seconds, or a map of those of a shared vocabulary.
void read_collectives(const YamlValue& value, const Scenario& scenario, GivenCost& cost);
void read_vocabulary_memory(YamlMap& map, const Scenario& scenario, GivenMemory& memory);

}  // namespace pipesim
