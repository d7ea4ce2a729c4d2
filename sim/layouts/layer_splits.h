// The splits with the least slowest stage that points of a plan share.
//
// Finding one takes longer than all else that is done to bound a point, and schedules, offload and
// vocabulary placements ask for the same again.
#pragma once

#include <array>
#include <map>
#include <mutex>

#include "models/layout.h"

namespace pipesim {

class BalancedLayouts {
 public:
  explicit BalancedLayouts(const Transformer& model) : model_(model) {}

  // As `balance` has it. What is returned stays. Any thread may ask.
  const Layout& of(int stages, const LayerSeconds& seconds);

 private:
  using Key = std::array<double, 6>;
  struct Entry {
    std::once_flag once;
    Layout layout;
  };

  const Transformer& model_;
  std::mutex mutex_;  // of the map; an entry is filled by whoever comes first
  std::map<Key, Entry> known_;
};

}  // namespace pipesim
