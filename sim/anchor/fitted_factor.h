// The one-cell protocol for the runs of one model in one set-up. One number is fitted to one
// measured cell, and every other cell is a prediction.
#pragma once

#include <functional>

#include "sim/core/units.h"

namespace pipesim {

// The factor on compute seconds with which the cell takes as long as was measured. `seconds` says
// how long it takes under a factor, and must grow with it. InfeasibleError when no factor from 0.05
// to 20 does. About ten calls.
double fitted_factor(Seconds measured, const std::function<Seconds(double factor)>& seconds);

}  // namespace pipesim
