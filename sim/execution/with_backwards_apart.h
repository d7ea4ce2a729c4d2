// A program with B and W apart.
#pragma once

#include "sim/pipeline/program.h"

namespace pipesim {

// The order with the W of each BW right behind its B: none of its passes is later, nor any peak
// higher. O(passes).
Program with_backwards_apart(const Program& program);

}  // namespace pipesim
