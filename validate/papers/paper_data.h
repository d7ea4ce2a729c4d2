// Where a paper's tables are read from.
#pragma once

#include <string>

#include "sim/scenario/yaml.h"

namespace pipesim {

// `<folder>/<name>.yaml`, or `<folder>/<name>/<name>.yaml` as the data stands here; the first, also
// when neither exists.
std::string paper_file(const std::string& folder, const std::string& name);
bool has_paper(const std::string& folder, const std::string& name);

}  // namespace pipesim
