// The building block of a described schedule as a picture of text.
#pragma once

#include <string>

#include "sim/planning/description.h"

namespace pipesim {

// A line per device, a column per slot, as they repeat, before ramps are tightened: capitals are
// the passes of one microbatch in the middle, X is BW, '.' is free. Below, what follows from the
// block. Slots beyond `columns` are left out.
std::string draw_block(const Description& description, const Problem& problem, int columns);

}  // namespace pipesim
