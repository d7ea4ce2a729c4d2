// A limit on activation memory, as planners ask it.
#pragma once

#include <algorithm>

#include "sim/core/units.h"

namespace pipesim {

// Covers rounding where bytes are summed in another order.
inline constexpr double kRounding = 1 + 1e-12;

// True if what is held keeps the limit, but for rounding.
inline bool is_within(Bytes held, Bytes limit) { return held <= kRounding * limit; }

class Room {
 public:
  // Forgets what was asked.
  void set_limit(Bytes limit) {
    limit_ = limit.value() * kRounding;
    asked_ = 0;
  }

  bool fits(double bytes) {
    if (bytes > limit_) return false;
    asked_ = std::max(asked_, bytes);
    return true;
  }
  // Counts bytes that are known to fit.
  void take(double bytes) { asked_ = std::max(asked_, bytes); }

  [[nodiscard]] double limit() const { return limit_; }
  // The most that has fitted: with any limit from there on up to the one set, all would have.
  [[nodiscard]] Bytes asked() const { return Bytes(asked_); }

 private:
  double limit_ = 0;
  double asked_ = 0;
};

}  // namespace pipesim
