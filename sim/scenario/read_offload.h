// The scenario's `offload` section, and what given costs say of copies to the host.
#pragma once

#include "sim/scenario/scenario.h"
#include "sim/scenario/yaml.h"

namespace pipesim {

// `true`, or a map {chunks: N, prefetch: X, devices_per_link: N}, all of them optional. InputError
// otherwise.
std::optional<Offload> read_offload(const YamlValue& value);

// `copy_out`, `copy_in` (one value, or one per device or stage as of the passes) and
// `copy_solo_factor` of `cost`.
void read_copy_cost(YamlMap& map, const Scenario& scenario, GivenCost& cost);

}  // namespace pipesim
