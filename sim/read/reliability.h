// The key `reliability` of a scenario.
#pragma once

#include "sim/read/yaml.h"
#include "sim/scenario/reliability.h"

namespace pipesim {

// Missing keys come from models/catalog/reliability.yaml.
Reliability read_reliability(const YamlValue& value);
Reliability usual_reliability();

}  // namespace pipesim
