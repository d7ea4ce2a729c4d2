// Reducing Activation Recomputation in Large Transformer Models: activation memory of a layer
// relative to tensor parallelism alone (Figure 7), and memory of the first stage (Figure 1).
#pragma once

#include <string>
#include <vector>

#include "sim/core/error.h"
#include "validate/papers/cell.h"

namespace pipesim {

// Reads korthikanti.yaml (validate/papers/paper_data.h).
std::vector<Cell> compare_korthikanti(const std::string& folder, const Location& asked);

}  // namespace pipesim
