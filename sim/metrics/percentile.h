// Percentiles of several runs.
#pragma once

#include <algorithm>
#include <vector>

namespace pipesim {

// The number below which `share` of the sorted numbers lie, 0 to 1; between two of them by a
// straight line. Requires at least one number.
inline double percentile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace pipesim
