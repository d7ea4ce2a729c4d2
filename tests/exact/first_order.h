// A good program to start from: its cost bounds the optimum.
#pragma once

#include <cstdint>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/windows.h"

namespace pipesim::exact {

// The cheapest of two sets of programs: plans within the limit by every schedule that accepts the
// problem, and many programs that repeatedly start one of the passes that can start soonest.
// Deterministic. Throws InfeasibleError when not even one microbatch at a time fits.
Program first_order(const Problem& problem);

}  // namespace pipesim::exact
