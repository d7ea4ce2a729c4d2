// Order statistics: of repeated timings, and of a fit's relative errors.
//
// Quantiles interpolate linearly between the sorted values (value i of n stands at i / (n - 1)).
// Errors: std::invalid_argument when there is no value, or a time that is not finite.
// O(n log n).
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

// In the unit of the times.
struct TimeSummary {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
  double minimum = 0;
  std::size_t repetitions = 0;

  // Width of the middle 80% over the median.
  [[nodiscard]] double spread() const { return (p90 - p10) / median; }
};

[[nodiscard]] double quantile(std::span<const double> sorted, double q);
[[nodiscard]] TimeSummary summarize_times(std::vector<double> times);
// Summary of the errors' sizes.
[[nodiscard]] ErrorSummary summarize(std::vector<double> relative_errors);

}  // namespace pipesim::calibration
