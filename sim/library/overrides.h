// Overrides of include/pipesim/, "path.to.key=value".
#pragma once

#include <string>
#include <vector>

#include "sim/read/yaml.h"

namespace pipesim {

std::vector<Override> parse_overrides(const std::vector<std::string>& texts);

}  // namespace pipesim
