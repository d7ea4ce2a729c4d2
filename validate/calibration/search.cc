#include "validate/calibration/search.h"

#include <cmath>
#include <cstddef>

namespace pipesim::calibration {
namespace {

constexpr int kRounds = 3;  // the search begins again with long steps, to leave a shallow minimum
constexpr double kFirstStep = 0.7;
constexpr double kLastStep = 1e-3;
constexpr double kLeastGain = 1e-9;

}  // namespace

Found least_error(const std::vector<Constant>& constants,
                  const std::function<double(const std::vector<double>&)>& error) {
  Found best;
  for (const Constant& constant : constants) best.values.push_back(constant.start);
  best.error = error(best.values);
  for (int round = 0; round < kRounds; ++round) {
    for (double step = kFirstStep; step > kLastStep;) {
      bool improved = false;
      for (std::size_t i = 0; i < constants.size(); ++i) {
        for (const double direction : {step, -step}) {
          std::vector<double> tried = best.values;
          tried[i] *= std::exp(direction);
          if (tried[i] > constants[i].upper) continue;
          const double tried_error = error(tried);
          if (!(tried_error < best.error - kLeastGain)) continue;
          best = {std::move(tried), tried_error};
          improved = true;
        }
      }
      if (!improved) step /= 2;
    }
  }
  return best;
}

}  // namespace pipesim::calibration
