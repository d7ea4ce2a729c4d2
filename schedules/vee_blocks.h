// Controllable memory's search for a V-shaped schedule (Qi et al., Pipeline Parallelism with
// Controllable Memory, arXiv 2405.15362, sections 3 and 4, appendix A): of the schedules that
// repeat a building block (sim/planning/building_block.h), the one that takes least within a limit
// on activation memory. For v-search and v-zb.
//
// The search of the paper builds every block's schedule. Ours first ranks all blocks by the period
// of their steady state under the true times and by their memory, and builds the most promising
// with few microbatches. It counts bytes as they are, and goes on where the paper's ends: the best
// are put into time once more, each W where its device waits (run_within). So for the limit and for
// every rung of whole and half times 1F1B's memory below it, until one is within 2% of what none
// can be below. A rung on which no program takes `most` or less is left out, and of orders that
// differ in their W alone all but the first are not put into time. O(blocks x p + rungs x (built x
// p^2 + finished x p m)); there are about 10 p blocks for each of 6 orders, or 10 times kTurns.
// What does not depend on the limit is done once.
#pragma once

#include <memory>

#include "schedules/order_within.h"

namespace pipesim {

// Of one problem in V-shape, within one limit after the other: each is what it would be by itself.
class BlockPlanner {
 public:
  explicit BlockPlanner(const Problem& problem);
  ~BlockPlanner();

  // No lists, and no end, where no block fits or none takes `most` or less.
  OrderWithin best(Bytes limit, const PlanTime& most = {});

 private:
  class Search;
  std::unique_ptr<Search> search_;
};

}  // namespace pipesim
