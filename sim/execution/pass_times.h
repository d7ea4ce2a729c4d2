// When passes start and end without any copies: the time in which copies are planned.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

struct PassTimes {
  // Where a pass stands in the program.
  struct Place {
    int device = 0;
    std::uint32_t position = 0;
  };
  std::vector<std::vector<double>> start, end;  // seconds, by device and position
  std::vector<Place> order;                     // each pass after those that it waits for
};

// Each pass as early as it can. O(passes). Throws InfeasibleError as `walk` does.
PassTimes pass_times(const Program& program, const Problem& problem);

}  // namespace pipesim
