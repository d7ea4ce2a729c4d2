// A curve with its numbers, and how far it lies from each of its points.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/units.h"

namespace pipesim::calibration {

using Numbers = std::vector<std::pair<std::string, std::string>>;  // names and values with units

struct FittedRow {
  std::string point;  // its key
  Seconds measured;
  double spread = 0;  // of repeated measurements
  double error = 0;   // (curve - measured) / measured
};

struct FittedCurve {
  std::string name;
  Numbers numbers;
  std::vector<FittedRow> rows;
};

}  // namespace pipesim::calibration
