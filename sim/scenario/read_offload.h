// The scenario's `offload` section, and what given costs say of copies to the host.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sim/scenario/scenario.h"
#include "sim/scenario/yaml.h"

namespace pipesim {

// `true`, or a map {chunks: N, prefetch: X, devices_per_link: N}, all of them optional. InputError
// otherwise.
std::optional<Offload> read_offload(const YamlValue& value);

// InputError where a schedule has fewer chunks than are to offload, or says so by an option of its
// own.
void check_offload(const Scenario& scenario);

// `copy_out`, `copy_in` (each by `read`) and `copy_solo_factor` of `cost`.
void read_copy_cost(YamlMap& map, const std::function<std::vector<Seconds>(const YamlValue&)>& read,
                    GivenCost& cost);

}  // namespace pipesim
