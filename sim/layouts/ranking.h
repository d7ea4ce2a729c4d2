// The fastest of a plan's runs, of those that say the same one.
//
// Among runs of equal sizes and times, the first in the order of points stands. A layout that
// recomputes or offloads modules is left out beside one that does less of it and takes no longer.
// That one must fit and be otherwise the same. The result does not depend on the order of runs.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "sim/layouts/outcome.h"

namespace pipesim {

// True if both have the same ranks and microbatches.
bool same_sizes(const PlanPoint& a, const PlanPoint& b);
// True if both differ in chunks, splits and the number of layers recomputed at most.
bool same_but_chunks(PlanPoint a, const PlanPoint& b);

class Ranking {
 public:
  // `folds`: runs that differ in chunks, splits and needless recomputation alone are one row.
  Ranking(size_t wanted, bool folds) : wanted_(wanted), folds_(folds) {}

  void add(Planned planned) { planned_.insert(std::move(planned)); }
  // Chooses the rows anew. Returns true where the last of them is now slower than before, so that
  // points that were too slow for it may rank.
  bool rank();

  // The rows of the last rank(), best first, at most as many as are wanted.
  [[nodiscard]] const std::vector<const Planned*>& rows() const { return rows_; }
  // The last of the rows; null while there are fewer than wanted.
  [[nodiscard]] const Planned* last() const;

 private:
  struct Before {
    bool operator()(const Planned& a, const Planned& b) const;
  };
  [[nodiscard]] bool is_needless(const Planned& planned) const;

  size_t wanted_;
  bool folds_;
  std::set<Planned, Before> planned_;
  std::vector<const Planned*> rows_;
};

}  // namespace pipesim
