// Stages and devices whose layers are of the same kinds in the same order: equal times and bytes.
//
// Layers that follow a pattern make neighbours differ, and the one a few stages on the same.
#pragma once

#include <vector>

#include "models/layout.h"

namespace pipesim {

// For each stage, the first one alike. O(stages x stages that differ x layers of a stage).
std::vector<int> first_alike(const Transformer& model, const Layout& layout);

// For each device, the first one alike, chunk by chunk.
std::vector<int> first_alike_devices(const Transformer& model, const Layout& layout,
                                     const Placement& placement);

}  // namespace pipesim
