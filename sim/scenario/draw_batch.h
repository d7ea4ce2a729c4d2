// From what a scenario says of unequal microbatches to the microbatches themselves.
#pragma once

#include <cstdint>

#include "sim/scenario/scenario.h"

namespace pipesim {

// Fills `documents` or `factors` of the scenario's unequal batch from seed `seed`; nothing where
// all microbatches are alike. InputError at the draw where a list does not make the scenario's
// microbatches. O(documents x microbatches).
void draw_batch(Scenario& scenario, std::uint64_t seed);

}  // namespace pipesim
