// Writes a program in PyTorch's schedule CSV (sim/scenario/torch_csv.h reads it): a row per rank.
#pragma once

#include <iosfwd>

#include "sim/pipeline/program.h"

namespace pipesim {

// Cells stand in time slots of one unit per pass, idle slots empty, so that a cell's inputs stand
// in earlier columns: that is what PyTorch's slot-by-slot runtime relies on, and its action-list
// runtime ignores. Throws InfeasibleError for what the form cannot express (two directions,
// sequence splits, recompute) and for a program that deadlocks.
void write_torch_csv(std::ostream& out, const Program& program);

}  // namespace pipesim
