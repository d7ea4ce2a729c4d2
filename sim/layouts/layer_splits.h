// The splits with the least slowest stage that points of a plan share.
//
// Finding one takes longer than all else that is done to bound a point, and schedules, offload and
// vocabulary placements ask for the same again.
#pragma once

#include <array>
#include <exception>
#include <map>

#include "models/layout.h"

namespace pipesim {

class BalancedLayouts {
 public:
  explicit BalancedLayouts(const Transformer& model) : model_(model) {}

  // Stages, and seconds of each kind of layer.
  using Key = std::array<double, 6>;
  static Key key(int stages, const LayerSeconds& seconds);

  class Entry {
   public:
    // As `balance` has it; what that throws is thrown here. Once it is found.
    [[nodiscard]] const Layout& layout() const;

   private:
    friend class BalancedLayouts;
    Layout layout_;
    std::exception_ptr failure_;
  };
  // Stays. Whether it is new: then `find` makes its layout.
  struct Sought {
    Entry* entry;
    bool is_new;
  };
  Sought at(const Key& key);
  void find(const Key& key, Entry& entry) const;

 private:
  const Transformer& model_;
  std::map<Key, Entry> known_;
};

}  // namespace pipesim
