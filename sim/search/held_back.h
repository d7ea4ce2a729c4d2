// An order brought within a limit on activation memory: each F waits until there is room.
#pragma once

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// The order with B and W apart and no blocks. F, B and W in one direction are put into a device's
// time again (sim/planning/run_within.h). In other programs each device goes through its passes in
// turn. An F waits for room beside what the oldest unfinished microbatch still needs. Where the
// devices then wait for each other, microbatches run one at a time.
// InfeasibleError for a limit below one microbatch, copies or a sharded vocabulary. O(passes x
// letters of a device).
Program held_back(const Program& program, const Problem& problem, Bytes limit);

// All F of a microbatch, then all that goes back, then the next microbatch, of each direction in
// turn. Requires B and W apart and no blocks.
Program one_at_a_time(const Program& program);

}  // namespace pipesim
