// Puts the passes of an order into a device's time again: F and B in the given order within a
// memory limit. Each W runs where the device would wait, or where it has to give its memory back.
//
// The order is a list per device of F, B and W in any executable order. Its W are ignored: every B
// owes one, and the oldest is run first. Stages may differ in seconds and bytes. One direction, no
// splits.
//
// Either the order itself keeps the limit at every F, all owed W having run; or `hold_back` makes
// it. An F then waits until its device also has room for the oldest unfinished microbatch to
// finish. So the oldest microbatch of all can always go on, and every limit of at least one
// microbatch ends in a complete program. (It is the banker's algorithm with microbatches as
// customers.)
//
// O(passes x log devices). Throws LogicError when a device is stuck, which needs a limit below one
// microbatch or, without `hold_back`, an order above the limit.
#pragma once

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/plan_time.h"

namespace pipesim {

struct WithinRules {
  bool hold_back = false;
  // Instead of waiting, a device runs a later B that has arrived and ends in time; under
  // `hold_back` a later F too.
  bool overtake = false;
};

struct WithinResult {
  PassLists lists;
  PlanTime time;  // in the unit of the problem's seconds
  // The most bytes that had room, and the least that had none. Within any limit from the one up to
  // the other the run would be the same.
  Bytes asked, refused;
  // True if the run met a choice that the other value of `overtake` could take differently.
  // Otherwise both values give the same lists.
  bool met_overtake = false;
};

// Gives up, with no lists and an infinite time, once that cannot be `most` or less.
WithinResult run_within(const Problem& problem, Bytes limit, const PassLists& order,
                        const WithinRules& rules, const PlanTime& most = {});

}  // namespace pipesim
