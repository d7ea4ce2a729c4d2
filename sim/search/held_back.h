// An order brought within a limit on activation memory: each F waits until there is room.
#pragma once

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// The order with B and W apart and no blocks. F, B and W in one direction are put into a device's
// time again (sim/planning/run_within.h); other programs are held by devices
// (sim/execution/held_by_devices.h). Where those then wait for each other, microbatches run one at
// a time. InfeasibleError for a limit below one microbatch, copies or a sharded vocabulary.
// O(passes x letters of a device).
Program held_back(const Program& program, const Problem& problem, Bytes limit);

}  // namespace pipesim
