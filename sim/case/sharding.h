// Seconds that a case's passes wait for sharded weights and gradients (models/sharding.h).
#pragma once

#include <vector>

#include "models/sharding.h"
#include "sim/case/case.h"

namespace pipesim {

// By virtual stage. Requires Outline::setting, a layout and a shape. O(layers).
std::vector<StageSharding> stage_shardings(const Case& made, const LayerCosts& costs);

// Adds them to the seconds of stages and blocks; a block waits for what both of its passes do.
void add_sharding(Case& made, const LayerCosts& costs);

}  // namespace pipesim
