// Where a paper's tables are read from, and what of the catalogue they name.
#pragma once

#include <string>

#include "models/hardware.h"
#include "models/software.h"
#include "sim/read/yaml.h"

namespace pipesim {

// A validation's name: `name`, or what the published collections of figures call it (simumax_b200
// is simumax, nemo_h100 is nemo).
std::string validation_name(const std::string& name);

// `<folder>/<name>.yaml`, or `<folder>/<name>/<name>.yaml` as the data stands here, or the first
// with the other name of the validation; the first, also when none exists.
std::string paper_file(const std::string& folder, const std::string& name);
bool has_paper(const std::string& folder, const std::string& name);

// A cluster of the catalogue by its name, which must be one; `asked` locates the request when the
// catalogue cannot be read.
Hardware cluster_of_catalog(const std::string& name, const Location& asked);

// A generation of a framework by its name, which must be one of the catalogue.
Software software_of_catalog(const std::string& name);

}  // namespace pipesim
