// The key `reliability` of a scenario.
#pragma once

#include "sim/read/yaml.h"
#include "sim/scenario/reliability.h"

namespace pipesim {

inline constexpr double kDaySeconds = 86400;
inline constexpr double kThousandNodeDays = 1000 * kDaySeconds;  // node-seconds

// Missing keys come from models/catalog/reliability.yaml.
Reliability read_reliability(const YamlValue& value);
Reliability usual_reliability();

}  // namespace pipesim
