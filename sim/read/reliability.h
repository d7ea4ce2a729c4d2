// The key `reliability` of a scenario.
#pragma once

#include "sim/read/yaml.h"
#include "sim/scenario/reliability.h"

namespace pipesim {

// What the section does not say is as models/catalog/reliability.yaml has it.
Reliability read_reliability(const YamlValue& value);
Reliability usual_reliability();

}  // namespace pipesim
