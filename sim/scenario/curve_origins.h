// The origin of the curves behind a scenario's seconds. It is the scenario's calibration file, the
// catalogue's fits to measurements of others, or the catalogue's published and assumed numbers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/scenario/sourced.h"

namespace pipesim {

// Names of curves, each in one list, in the order in which their numbers were read.
struct CurveOrigins {
  std::vector<std::string> measured;
  std::vector<std::string> fitted;
  std::vector<std::string> catalogue;
};

[[nodiscard]] CurveOrigins curve_origins(std::span<const Sourced> numbers);

}  // namespace pipesim
