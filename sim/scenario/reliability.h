// Interruptions of a training run, and its answers to them: the section `reliability`.
#pragma once

#include <optional>

#include "sim/core/units.h"

namespace pipesim {

struct Reliability {
  // Events per node and second, each of which ends the run until it is started again.
  double failure_rate = 0;
  Seconds restart;                                  // from a failure until training goes on
  Seconds repair;                                   // until a node that failed may be used again
  std::optional<int> spare_nodes = {};              // without it, there is always another node
  BytesPerSecond checkpoint_bandwidth{1};           // of a node
  std::optional<Bytes> checkpoint_size = {};        // without it, what the model's state takes
  std::optional<Seconds> checkpoint_interval = {};  // of work; without it, the best
  // A node that slows all others down, as they wait for it, until it is found and replaced.
  double slow_rate = 0;    // per node and second
  double slow_factor = 1;  // times as long as without it
  Seconds slow_found;
};

}  // namespace pipesim
