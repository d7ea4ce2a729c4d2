// Which curves of an answer its calibration file measured, and which are the catalogue's.
#pragma once

#include <string>

#include "sim/scenario/scenario.h"

namespace pipesim {

// Lines, each with its end; none without a calibration file.
std::string curves_text(const Scenario& scenario);

}  // namespace pipesim
