// The scenario's `offload` section, and what given costs say of copies to the host.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sim/read/yaml.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// `true`, `false` (0 chunks), `auto`, or a map {chunks: N, auto or a list; microbatches: a list or
// {from, to, every}; bandwidth: duplex or alone; plan; prefetch: X; devices_per_link: N}, all of
// them optional. InputError otherwise.
Offload read_offload(const YamlValue& value);

// Makes `plan: published` or `best` the choice's option offload_plan, where its schedule has rules
// of a paper. InputError where it has none and `published` is asked for.
void set_offload_plan(const YamlValue& offload, ScheduleChoice& choice);

// Gives the scenario's `offload` to choices that have none of their own. InputError where a
// schedule has fewer chunks or microbatches than are named, or offloads by itself.
void settle_offload(YamlMap& root, Scenario& scenario);

// `copy_out`, `copy_in` (each by `read`) and `copy_solo_factor` of `cost`.
void read_copy_cost(YamlMap& map, const std::function<std::vector<Seconds>(const YamlValue&)>& read,
                    GivenCost& cost);

}  // namespace pipesim
