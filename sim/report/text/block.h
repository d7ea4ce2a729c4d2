// The repeating part of a described schedule, as text: its building block, or the rounds of its
// rules.
#pragma once

#include <string>

#include "sim/planning/description.h"

namespace pipesim {

// A line per device, a column per slot, as they repeat, before ramps are tightened. Capitals are
// the passes of one microbatch in the middle, X is BW, '.' is free. Below, what follows from the
// block. Slots beyond `columns` are left out.
std::string draw_block(const Description& description, const Problem& problem, int columns);

// A line per device: the rounds that it runs of every phase, as `F x3, (F BW) x5, BW x3`, and how
// many chunks are in flight at most.
std::string rounds_text(const Description& description, const Problem& problem);

}  // namespace pipesim
