#include "validate/calibration/fit_host.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "models/software.h"
#include "validate/calibration/compare_layers.h"

namespace pipesim::calibration {
namespace {

constexpr double kMostSigma = 0.5;
constexpr double kMiddle80 = 2.5631;  // width of a normal distribution's middle 80%, in sigmas

struct Ratio {
  const Point* point;
  double value;  // of the constant that meets this row
};

// The constant with the least mean relative error: that of one of the rows.
double best_of(const std::vector<Ratio>& rows) {
  double best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (const Ratio& tried : rows) {
    double sum = 0;
    for (const Ratio& row : rows) sum += std::abs(tried.value / row.value - 1);
    if (sum >= least) continue;
    least = sum;
    best = tried.value;
  }
  return best;
}

FittedRow fitted_row(const Point& point, double error) {
  return {point.key(), Seconds(point.time_us.median * 1e-6), point.time_us.spread(), error};
}

bool is_launch(const Point& point) {
  return point.group == "launch" && point.name == "host_launch";
}

// Seconds of an operation, from the passes that ran in this mode.
std::vector<Ratio> rows_of_mode(const std::vector<const Point*>& points, std::string_view mode,
                                bool fused) {
  std::vector<Ratio> rows;
  for (const Point* point : points) {
    if (is_launch(*point) || point->parameter("mode") != mode) continue;
    rows.push_back({point, point->time_us.median * 1e-6 / operations_of(*point, fused)});
  }
  return rows;
}

}  // namespace

std::vector<const Point*> host_points(const Measurements& measured) {
  std::vector<const Point*> points;
  for (const Point& point : measured.points) {
    if (point.group == "host" || is_launch(point)) points.push_back(&point);
  }
  return points;
}

FittedCurve fit_host(const std::vector<const Point*>& points, bool fused) {
  FittedCurve curve;
  const auto say = [&curve](const char* mode, double seconds) {
    curve.numbers.emplace_back(mode, fmt::format("{:.3g} us", seconds * 1e6));
  };
  const Point* launch = nullptr;
  for (const Point* point : points) {
    if (is_launch(*point)) launch = point;
  }
  for (const char* mode : kLaunchModes) {
    const std::vector<Ratio> rows = rows_of_mode(points, mode, fused);
    const double found = best_of(rows);
    for (const Ratio& row : rows) {
      curve.rows.push_back(fitted_row(*row.point, found / row.value - 1));
    }
    if (!rows.empty()) {
      say(mode, found);
    } else if (launch != nullptr && mode != kLaunchModes.back()) {
      say(mode, launch->time_us.median * 1e-6);
    }
  }
  if (curve.rows.empty()) {
    if (launch == nullptr) {
      throw std::invalid_argument("no row has a mode: eager, compiled or cuda_graphs");
    }
    curve.rows.push_back(fitted_row(*launch, 0));
  }
  return curve;
}

FittedCurve fit_jitter(const std::vector<const Point*>& points) {
  std::vector<Ratio> rows;
  for (const Point* point : points) {
    const double wide = std::log(point->time_us.p90 / std::max(1e-6, point->time_us.p10));
    rows.push_back({point, std::max(1e-6, wide / kMiddle80)});
  }
  const double sigma = best_of(rows);
  if (sigma > kMostSigma) {
    throw std::invalid_argument(
        fmt::format("passes spread by a sigma of {:.2g}, more than {:g}: something else ran", sigma,
                    kMostSigma));
  }
  FittedCurve curve{"", {{"sigma", fmt::format("{:.4g}", sigma)}}, {}};
  // The error is that of the slow end beside the fast one.
  for (const Ratio& row : rows) {
    curve.rows.push_back(fitted_row(*row.point, std::exp(kMiddle80 * (sigma - row.value)) - 1));
  }
  return curve;
}

}  // namespace pipesim::calibration
