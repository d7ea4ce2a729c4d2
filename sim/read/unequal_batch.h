// The part of a section `batch` that makes microbatches differ: lengths or factors, packing and
// order.
#pragma once

#include <optional>
#include <string>

#include "sim/read/yaml.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Nothing where the section has neither lengths nor factors. A histogram file is looked for beside
// `scenario_file`, then in the current folder. `batch` says the sizes that were read before.
std::optional<UnequalBatch> read_unequal_batch(YamlMap& map, const Batch& batch,
                                               const std::string& scenario_file);

// Once costs and model are read: draws the microbatches. InputError where lengths have no model's
// seconds to make costs of, or factors stand beside them.
void settle_unequal_batch(Scenario& scenario);

}  // namespace pipesim
