// The scenario's `recompute` section, and the same word beside a schedule's name.
#pragma once

#include "sim/read/yaml.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// `none`, `selective`, `pointwise`, `full`, or a map {granularity: ..., chunks: N}, N with `full`
// only. InputError otherwise.
Recompute read_recompute(const YamlValue& value);

// Gives every schedule without a word of its own the scenario's, or none. InputError where more
// chunks are asked for than a schedule has, and for `selective` without a model.
void settle_recompute(YamlMap& root, Scenario& scenario);

}  // namespace pipesim
