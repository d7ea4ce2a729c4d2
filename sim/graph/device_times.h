// A device's seconds in one iteration: the sums behind a run's numbers that need no timeline.
#pragma once

#include <limits>

namespace pipesim {

struct DeviceTimes {
  double first_start = std::numeric_limits<double>::infinity();  // of passes
  double last_end = 0;
  double pass_busy = 0;
  double busy = 0;       // passes and optimizer step
  double recompute = 0;  // of that, R passes
  double period = 0;     // to the same point of the next iteration
};

}  // namespace pipesim
