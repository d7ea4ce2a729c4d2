// The least time of jobs on one machine that have heads and tails and may be interrupted.
#pragma once

#include <vector>

namespace pipesim {

struct MachineJob {
  double head = 0;     // it starts no earlier
  double seconds = 0;  // on the machine
  double tail = 0;     // what follows its end
};

struct MachineBound {
  double seconds = 0;
  double tail = 0;  // of the job that decides it
};

// Jackson's preemptive schedule (Carlier 1982): at any time the job with the longest tail of those
// that may run. O(jobs x log).
MachineBound one_machine_bound(std::vector<MachineJob> jobs);

}  // namespace pipesim
