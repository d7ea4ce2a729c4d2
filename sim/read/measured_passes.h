// Files of measured passes (pipesim-passes/1), as `pipesim import --format passes` writes them.
#pragma once

#include <string>

#include "sim/read/yaml.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// A section `cost` of kind `measured` that names such a file, which is looked for beside the
// scenario, then in the current folder. The optimizer step includes the opening and closing of an
// iteration. InputError at the place of the error.
GivenCost read_measured_cost(YamlMap& map, const std::string& scenario_file,
                             VocabularyPlacement vocabulary);

// Where B and W were measured together, W takes `weight_share` of them.
MeasuredPasses read_measured_passes(const YamlSource& source, double weight_share);

}  // namespace pipesim
