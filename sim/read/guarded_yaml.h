// YAML from anyone: what yaml-cpp would not survive, or leave out in silence, is refused before it
// builds anything.
#pragma once

#include <functional>
#include <string>
#include <yaml-cpp/yaml.h>

#include "sim/core/error.h"

namespace pipesim {

// The one document of `text`. InputError, at the location by `locate`, for invalid YAML, several
// documents or text behind the end of one. Also for a directive (a line that begins with %), and
// for an alias to its own container. Also for more than 2,000,000 nodes with every alias written
// out, and containers more than 200 deep. O(size).
YAML::Node load_yaml(const std::string& text,
                     const std::function<Location(const YAML::Mark&)>& locate);

}  // namespace pipesim
