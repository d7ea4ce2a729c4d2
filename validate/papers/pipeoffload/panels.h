// Figure 15: MFU and activation memory of six schedules, a panel for each model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/read/yaml.h"
#include "validate/papers/cell.h"

namespace pipesim::pipeoffload {

// Samples of an iteration by model ("10.5B"), of Table 2; of a file without it the project's own.
using Batches = std::map<std::string, int>;
Batches read_batches(YamlMap& root);

// Adds every panel: m18p1B_16gpu is po-18.1b on 16 GPUs. InputError where a name is no panel's, or
// a row not as expected.
void compare_panels(std::vector<Cell>& cells, const YamlValue& panels, const Batches& batches);

}  // namespace pipesim::pipeoffload
