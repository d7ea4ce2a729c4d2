// Lower bounds for the programs of a search, and the least of them. There is one for each
// placement, split of layers and costs among its families, computed within a limit on demand.
#pragma once

#include <optional>
#include <vector>

#include "models/layout.h"
#include "sim/pipeline/problem.h"
#include "sim/search/bound.h"

namespace pipesim {

// True where the stages of the two stand on the same devices, cost and hold the same.
bool same_costs(const Problem& a, const Problem& b);

// A placement, split of layers and costs. Families with overlapped blocks have a ground of their
// own.
struct Ground {
  std::optional<Layout> layout;
  bool overlaps = false;
  Problem problem;
  // Each relief of its families, once; nothing where it is no number of chunks.
  std::vector<std::optional<Relief>> reliefs;
  Seconds without_limit;  // the bound of programs whose memory is plenty
  // True if its families keep every activation.
  [[nodiscard]] bool is_plain() const;
  // True if it bounds a problem of these layers. Backwards that are one pass may cost less.
  [[nodiscard]] bool holds(const std::optional<Layout>& layers, const Problem& other) const;
  // The problem that bounds of single passes take: where blocks overlap, of passes so much shorter.
  [[nodiscard]] Problem of_single_passes() const;
};

class Grounds {
 public:
  // Once each, with each relief of its families. O(that of the bound).
  void add(const std::optional<Layout>& layers, const Problem& problem, bool overlaps,
           const std::optional<Relief>& relief);
  [[nodiscard]] const std::vector<Ground>& all() const { return all_; }

 private:
  std::vector<Ground> all_;
};

// `reason` is empty where relief by offload or recomputation lowered the bound.
struct LeastBound {
  Seconds seconds;
  std::optional<BoundReason> reason;
};

class BoundsWithin {
 public:
  // `grounds` outlive it.
  BoundsWithin(const Grounds& grounds, Bytes limit)
      : grounds_(grounds.all()), limit_(limit), known_(grounds_.size()) {}

  // The bound for the programs of a problem, without overlapped blocks.
  [[nodiscard]] Seconds of(const std::optional<Layout>& layers, const Problem& problem);
  // The least of all grounds. With the time of a program in `best`, small placements also exclude
  // times below it (excluded.h).
  [[nodiscard]] LeastBound least(std::optional<Seconds> best = std::nullopt);

 private:
  const Bound& bound(size_t ground);
  [[nodiscard]] LeastBound least_of(const Ground& ground, const Bound& bound,
                                    std::optional<Seconds> best) const;

  const std::vector<Ground>& grounds_;
  Bytes limit_;
  std::vector<std::optional<Bound>> known_;  // of the grounds
};

}  // namespace pipesim
