// A program with B and W apart, or as one pass.
#pragma once

#include "sim/pipeline/program.h"

namespace pipesim {

// The order with the W of each BW right behind its B: none of its passes is later, nor any peak
// higher. O(passes).
Program with_backwards_apart(const Program& program);

// The order with each B as a BW, without the W; a block of F and W becomes its F. Requires a
// program without copies and a sharded vocabulary. O(passes).
Program with_backwards_whole(const Program& program);

}  // namespace pipesim
