// How much shorter two passes may be together than one after the other: for bounds that look at
// passes alone.
#pragma once

#include "sim/pipeline/problem.h"

namespace pipesim {

// The least share of their seconds that F and BW of any two chunks take as one block; at most 1.
// The chunks are of one device, the block is block_seconds in evaluate.h. O(devices x chunks^2).
double least_overlap(const Problem& problem);

// The problem with F, B and W shortened so that any two that may overlap take no longer in turn
// than their block. A lower bound for it holds for programs with overlapped blocks.
Problem without_overlap(Problem problem);

}  // namespace pipesim
