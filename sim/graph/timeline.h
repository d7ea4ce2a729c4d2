// When every task of a graph started and ended: what an engine produces, and what every reported
// number is derived from.
#pragma once

#include <vector>

#include "sim/core/large_vector.h"

namespace pipesim {

struct Timeline {
  LargeVector<double> start;  // seconds, by task
  LargeVector<double> end;
  bool shared_links = false;          // two messages were on one link at the same time
  std::vector<double> energy_joules;  // by device, when the engine accounts for it
};

}  // namespace pipesim
