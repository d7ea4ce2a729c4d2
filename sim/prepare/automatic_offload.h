// Resolves `offload: auto`: the most chunks that cost no time and fit the hosts' memory.
#pragma once

#include <string>

#include "sim/case/case.h"

namespace pipesim {

struct ChosenOffload {
  ScheduleChoice choice;  // with that many chunks; 0 where none is free
  std::string reason;
};

// By simulation with the scenario's engine: not more than a relative 1e-9 longer than without, of
// ensembles than twice the error of their means. One simulation for each number of chunks tried.
// `balanced` is where layers stand, where they are balanced. InputError at the offload for
// iterations of more than 2^20 passes.
ChosenOffload choose_offload(const Outline& outline, const Layout* balanced);

}  // namespace pipesim
