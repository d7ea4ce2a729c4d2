// How much shorter two passes may be together than one after the other: for bounds that look at
// passes alone.
#pragma once

#include "sim/pipeline/problem.h"

namespace pipesim {

// The least share of their seconds that F and BW of any two chunks of a device take as one block
// (block_seconds in evaluate.h); at most 1. O(devices x chunks^2).
double least_overlap(const Problem& problem);

// The problem with F, B and W so much shorter that any two that may overlap take no longer one
// after the other than their block: a bound of it bounds programs with overlapped blocks.
Problem without_overlap(Problem problem);

}  // namespace pipesim
