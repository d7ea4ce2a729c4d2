#include "validate/calibration/statistics.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace pipesim::calibration {

double quantile(std::span<const double> sorted, double q) {
  if (sorted.empty()) throw std::invalid_argument("a quantile of no values");
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = position - static_cast<double>(below);
  return sorted[below] + weight * (sorted[above] - sorted[below]);
}

TimeSummary summarize_times(std::vector<double> times) {
  if (!std::all_of(times.begin(), times.end(), [](double time) { return std::isfinite(time); })) {
    throw std::invalid_argument("a time that is not finite");
  }
  std::sort(times.begin(), times.end());
  return {.median = quantile(times, 0.5),
          .p10 = quantile(times, 0.1),
          .p90 = quantile(times, 0.9),
          .minimum = times.front(),
          .repetitions = times.size()};
}

ErrorSummary summarize(std::vector<double> relative_errors) {
  for (double& error : relative_errors) error = std::abs(error);
  std::sort(relative_errors.begin(), relative_errors.end());
  return {.rows = relative_errors.size(),
          .median = quantile(relative_errors, 0.5),
          .p90 = quantile(relative_errors, 0.9),
          .worst = quantile(relative_errors, 1)};
}

}  // namespace pipesim::calibration
