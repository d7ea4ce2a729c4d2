// What follows from a described block by itself, before anything runs. These are the claims of a
// description; tests/read/description_claims_test.cc holds simulations to them.
#pragma once

#include <vector>

#include "sim/planning/description.h"

namespace pipesim {

struct BlockFigures {
  struct Device {
    long busy = 0;      // slots of a microbatch's passes
    long lifespan = 0;  // slots from F to the end of W or BW, over all of its chunks
    // Chunks in flight at most once the block repeats itself: `lifespan` over the period, and what
    // the moments at which they begin add to that; at most all that the device ever has.
    int in_flight = 0;
  };
  long period = 0;  // slots from one microbatch to the next
  std::vector<Device> devices;
  // Of the device that takes longest, with nothing tightened: its slots from first to last, and
  // those in which it works. Passes that take as long as their slots need no more than `span`.
  long span = 0;
  long work = 0;

  // Chunks in flight on the device that has most, which tightened ramps keep to.
  [[nodiscard]] int most_in_flight() const;
};

// Of the block as it is instantiated for this problem. Lifespans are those of a microbatch in the
// middle: with m of less than twice the lifespan over the period it may be no steady one.
BlockFigures figures_of(const Description& description, const Problem& problem);

}  // namespace pipesim
