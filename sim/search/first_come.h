// An order of any placement within a limit, to refine where no schedule has one. An idle device
// runs a B that can start, else an F, else a W.
#pragma once

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// Requires what `for_planning` returns, in one direction and without splits, and a limit of at
// least one microbatch. O(passes log passes).
Program first_come(Problem problem, Bytes limit);

}  // namespace pipesim
