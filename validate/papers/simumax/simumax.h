// SimuMax's measured runs of Megatron-LM on B200 against first principles: milliseconds of an
// iteration and GiB allocated.
#pragma once

#include <string>
#include <vector>

#include "sim/core/error.h"
#include "validate/papers/cell.h"

namespace pipesim::simumax {

// Reads simumax.yaml (validate/papers/paper_data.h), and the catalogues.
std::vector<Cell> compare(const std::string& folder, const Location& asked);

}  // namespace pipesim::simumax
