// NeMo's published pre-training throughput on H100 in FP8 against first principles: tokens and
// model TFLOP per second and GPU.
#pragma once

#include <string>
#include <vector>

#include "sim/core/error.h"
#include "validate/papers/cell.h"

namespace pipesim::nemo {

// Reads nemo.yaml (validate/papers/paper_data.h), and the catalogues.
std::vector<Cell> compare(const std::string& folder, const Location& asked);

}  // namespace pipesim::nemo
