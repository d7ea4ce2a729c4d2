// Files of measured passes (pipesim-passes/1), as `pipesim import --format passes` writes them.
#pragma once

#include <memory>
#include <string>

#include "sim/read/yaml.h"
#include "sim/scenario/measured_passes.h"

namespace pipesim {

// `file` is looked for beside the scenario, then in the current folder. Where B and W were measured
// together, W takes `weight_share` of them. InputError with the place of what is wrong.
std::shared_ptr<const MeasuredPasses> read_measured_passes(const YamlValue& file,
                                                           const std::string& scenario_file,
                                                           double weight_share);

MeasuredPasses read_measured_passes(const YamlSource& source, double weight_share);

}  // namespace pipesim
