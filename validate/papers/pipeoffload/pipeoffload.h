// PipeOffload (Wan et al. 2025, arXiv 2503.01328): the formulas of Table 1, the copy-to-compute
// ratio of Figure 1, the 10.5B model of Figure 15, the recomputation of Figure 16.
#pragma once

#include <string>
#include <vector>

#include "sim/core/error.h"
#include "validate/papers/cell.h"

namespace pipesim {

std::vector<Cell> compare_pipeoffload(const std::string& folder, const Location& asked);

}  // namespace pipesim
