// Megatron-LM's published throughput against first principles: stages timed by models/, 1F1B
// replayed, and nothing fitted.
#pragma once

#include <string>
#include <vector>

#include "sim/core/error.h"
#include "validate/papers/cell.h"

namespace pipesim::megatron {

// Reads `<folder>/megatron.yaml`, or `<folder>/megatron/megatron.yaml` as it stands here, and the
// catalogues. A cell is one row's TFLOP/s per GPU, its error relative.
std::vector<Cell> compare(const std::string& folder, const Location& asked);

}  // namespace pipesim::megatron
