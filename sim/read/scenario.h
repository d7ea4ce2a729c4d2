// From a scenario file to a Scenario. Throws InputError; reads no clock and of the environment only
// where data stands (sim/core/data_folder.h). A cluster's name is looked up in the catalogue there
// (sim/read/hardware.h).
#pragma once

#include <string>

#include "sim/read/yaml.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

Scenario read_scenario(const YamlSource& source);

// `asked` locates the request, for when the file cannot be read. A CSV schedule stands relative to
// the scenario's folder or, when it is not there, to the current one.
Scenario read_scenario_file(const std::string& path, const Location& asked,
                            std::vector<Override> overrides = {});

// Why an iteration of so many samples is not what is meant, which the global batch in tokens often
// is; empty where it may be.
std::string doubt_of_batch(long samples, std::optional<int> seq_length);

}  // namespace pipesim
