// The scenario's `recompute` section, and the same word beside a schedule's name.
#pragma once

#include "sim/read/yaml.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// A word of models/recompute.h, a list of its modules (in one word with '+' between), or a map. Its
// keys: granularity, and beside it chunks, method, num_layers, every, others and encoder
// (docs/reference/scenario.md). InputError for others, and for keys that do not go together.
Recompute read_recompute(const YamlValue& value);

// Gives every schedule without a word of its own the scenario's, or none. InputError where more
// chunks are asked for than a schedule has, and for modules without a model.
void settle_recompute(YamlMap& root, Scenario& scenario);

}  // namespace pipesim
