// The splits with the least slowest stage that points of a plan share.
//
// Finding one takes longer than all else that is done to bound a point, and schedules, offload and
// vocabulary placements ask for the same again.
#pragma once

#include <array>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include "models/layout.h"

namespace pipesim {

class BalancedLayouts {
 public:
  explicit BalancedLayouts(const Transformer& model) : model_(model) {}

  // Stages, and seconds of each kind of layer.
  using Key = std::array<double, 6>;
  static Key key(int stages, const LayerSeconds& seconds);

  // Finds those that are not known yet, each once; `in_parallel(count, work)` runs `work(i)` for
  // every i below `count`.
  template <class InParallel>
  void find(const std::vector<Key>& keys, const InParallel& in_parallel) {
    std::vector<std::pair<const Key, Found>*> sought;
    for (const Key& key : keys) {
      const auto [known, is_new] = known_.try_emplace(key);
      if (is_new) sought.push_back(&*known);
    }
    in_parallel(sought.size(), [&](size_t i) { sought[i]->second = balanced(sought[i]->first); });
  }

  // The layout of a key that was found, or the exception that `balance` threw. The reference stays
  // valid.
  [[nodiscard]] const Layout& of(const Key& key) const;

 private:
  struct Found {
    Layout layout;
    std::exception_ptr failure;
  };
  [[nodiscard]] Found balanced(const Key& key) const;

  const Transformer& model_;
  std::map<Key, Found> known_;
};

}  // namespace pipesim
