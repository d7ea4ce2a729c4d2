// Figures of a described block, computed before anything runs: the claims of its description.
// tests/read/description_claims_test.cc holds simulations to them.
#pragma once

#include <vector>

#include "sim/planning/description.h"

namespace pipesim {

struct BlockFigures {
  struct Device {
    long busy = 0;      // slots of a microbatch's passes
    long lifespan = 0;  // slots from F to the end of W or BW, over all of its chunks
    // Most chunks in flight once the block repeats: `lifespan` over the period, plus an excess that
    // depends on when they begin. At most all of the device's.
    int in_flight = 0;
  };
  long period = 0;  // slots from one microbatch to the next
  std::vector<Device> devices;
  // The device that takes longest, with nothing tightened: its slots from first to last, and those
  // in which it works. Passes as long as their slots need at most `span`.
  long span = 0;
  long work = 0;

  // Chunks in flight on the device that has most, which tightened ramps keep to.
  [[nodiscard]] int most_in_flight() const;
};

// Instantiates the block for this problem. Lifespans are those of a microbatch in the middle. With
// fewer microbatches than twice the lifespan over the period, none may be in a steady state.
BlockFigures figures_of(const Description& description, const Problem& problem);

}  // namespace pipesim
