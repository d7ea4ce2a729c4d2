// A scenario from YAML (docs/reference/scenario.md), as an immutable value that can be copied and
// changed: pipesim::Scenario.
//
// Each override replaces a value of the file, as on the command line: "batch.num_microbatches=8".
// InputError says where the mistake stands and what was expected; nothing is simulated.
#pragma once

#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

Scenario scenario_from_file(const std::string& path,
                            const std::vector<std::string>& overrides = {});
// Files that the text names stand relative to the current folder.
Scenario scenario_from_text(const std::string& text,
                            const std::vector<std::string>& overrides = {});

}  // namespace pipesim
