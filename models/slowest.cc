#include "models/slowest.h"

#include <cmath>
#include <numbers>

namespace pipesim {

// The integral of 1 - P(all of them <= x), from -reach on, less reach. Steps of equal width
// converge fast where a function is smooth.
double expected_maximum(double count) {
  constexpr int kSteps = 320;
  constexpr double kReach = 10;
  constexpr double kWidth = 2 * kReach / kSteps;
  double sum = 0.5;  // half of the first step, where the integrand is 1
  for (int step = 1; step < kSteps; ++step) {
    const double x = -kReach + step * kWidth;
    const double below = std::erfc(-x / std::numbers::sqrt2) / 2;
    sum += 1 - std::pow(below, count);
  }
  return kWidth * sum - kReach;
}

}  // namespace pipesim
