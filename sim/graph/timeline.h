// When every task of a graph started and ended: what an engine produces, and what every reported
// number is derived from.
#pragma once

#include <vector>

namespace pipesim {

struct Timeline {
  std::vector<double> start;  // seconds, by task
  std::vector<double> end;
  bool shared_links = false;          // two messages were on one link at the same time
  std::vector<double> energy_joules;  // by device, when the engine accounts for it
};

}  // namespace pipesim
