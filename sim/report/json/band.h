// The band of a simulated time as documents have it: {level, iteration_seconds: [low, high], rows,
// group}, or null where no measured run is near.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "sim/band/band.h"
#include "sim/core/units.h"

namespace pipesim {

nlohmann::ordered_json band_json(const std::optional<Band>& band, Seconds iteration);

}  // namespace pipesim
