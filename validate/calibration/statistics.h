// How a fit's error is quoted: order statistics of absolute relative errors.
//
// Quantiles interpolate linearly between the sorted values (value i of n stands at i / (n - 1)).
// Errors: std::invalid_argument when there is no value. O(n log n).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace pipesim::calibration {

struct ErrorSummary {
  std::size_t rows = 0;
  double median = 0;
  double p90 = 0;
  double worst = 0;
};

[[nodiscard]] double quantile(std::span<const double> sorted, double q);
[[nodiscard]] ErrorSummary summarize(std::vector<double> relative_errors);

}  // namespace pipesim::calibration
