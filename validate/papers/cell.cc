#include "validate/papers/cell.h"

#include <cmath>

namespace pipesim {

std::optional<double> Cell::error() const {
  if (!simulated) return std::nullopt;
  return *simulated - published;
}

std::optional<double> Cell::relative_error() const {
  if (!simulated) return std::nullopt;
  return *simulated / published - 1;
}

bool Cell::agrees() const {
  if (!simulated) return false;
  if (relative) {
    const bool any = worst == 0 && within == 0;
    return any || std::abs(*relative_error()) <= worst || std::abs(*error()) <= within;
  }
  const double scale = std::pow(10.0, digits);
  const long ours = std::lround(*simulated * scale);
  const long theirs = std::lround(published * scale);
  return may_be_lower ? ours <= theirs : ours == theirs;
}

}  // namespace pipesim
