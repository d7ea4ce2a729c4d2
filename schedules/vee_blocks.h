// Controllable memory's search for a V-shaped schedule (Qi et al., Pipeline Parallelism with
// Controllable Memory, arXiv 2405.15362, sections 3 and 4, appendix A). It finds the fastest
// repetition of a building block (sim/planning/building_block.h) within a limit on activation
// memory. For v-search and v-zb.
//
// The paper's search builds every block's schedule. Ours first ranks all blocks by the period of
// their steady state under the true times and by their memory. It builds the most promising with
// few microbatches, and counts bytes as they are. It goes on where the paper's ends: the best are
// put into time once more, each W where its device waits (run_within).
//
// It does so for the limit and every rung below it, until a program is within 2% of the lower
// bound. The rungs are whole and half times 1F1B's peak. A rung whose programs all take more than
// `most` is left out. Among orders that differ only in their W, the first is put into time. Work
// independent of the limit is done once. O(blocks x p + rungs x (built x p^2 + finished x p m)).
// There are about 10 p blocks for each of 6 orders, or 10 times kTurns.
#pragma once

#include <memory>

#include "schedules/order_within.h"

namespace pipesim {

// Plans one problem in V-shape within any limits; each answer is independent of earlier ones.
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
