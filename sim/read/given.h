// Given costs and memory: the sections `cost` and `memory` where nothing follows from a model.
#pragma once

#include "sim/read/yaml.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Reads `cost`, of kind given or measured. Requires schedules, sizes, vocabulary and cluster to be
// read.
GivenCost read_cost(const YamlValue& value, const Scenario& scenario);

// Reads `memory` of kind given. Requires the same.
GivenMemory read_memory(const YamlValue& value, const Scenario& scenario);

}  // namespace pipesim
