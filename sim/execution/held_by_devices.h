// Orders that hold less: transforms of programs of every kind, B and W apart and no blocks.
#pragma once

#include <optional>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// Each device goes through its passes in turn. An F waits for room beside what the oldest
// unfinished microbatch still needs. Nothing where a device's microbatch alone has none; the
// devices of the result may wait for each other. O(passes x letters of a device).
std::optional<Program> held_by_devices(const Program& program, const Problem& problem, Bytes limit);

// All F of a microbatch, then all that goes back, then the next microbatch, of each direction in
// turn. O(passes x log passes).
Program one_at_a_time(const Program& program);

}  // namespace pipesim
