// The least error over a few positive constants, found by a pattern search on their logarithms.
//
// Steps each constant up and down by a factor and narrows the factor when none helps. No derivative
// is needed, so the error may be any function; every run gives the same result. `upper` bounds a
// constant from above.
#pragma once

#include <functional>
#include <limits>
#include <vector>

namespace pipesim::calibration {

struct Constant {
  double start = 1;  // > 0
  double upper = std::numeric_limits<double>::infinity();
};

struct Found {
  std::vector<double> values;
  double error = 0;
};

[[nodiscard]] Found least_error(const std::vector<Constant>& constants,
                                const std::function<double(const std::vector<double>&)>& error);

}  // namespace pipesim::calibration
