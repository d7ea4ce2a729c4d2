#include "models/slowest.h"

#include <boost/math/quadrature/trapezoidal.hpp>
#include <cmath>
#include <numbers>

namespace pipesim {

// The integral of 1 - P(all of them <= x), from -reach on, less reach. Steps of equal width
// converge fast where a function is smooth.
double expected_maximum(double count) {
  constexpr double kReach = 10;
  constexpr double kTolerance = 1e-9;  // of the last halving: what it leaves is its square
  const auto some_above = [count](double x) {
    const double below = std::erfc(-x / std::numbers::sqrt2) / 2;
    return 1 - std::pow(below, count);
  };
  using boost::math::quadrature::trapezoidal;
  return trapezoidal(some_above, -kReach, kReach, kTolerance) - kReach;
}

}  // namespace pipesim
