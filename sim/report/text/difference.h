// Differences between two simulated times for people, with their band.
#pragma once

#include <string>

#include "sim/band/difference.h"

namespace pipesim {

// The second of two simulated times against the first, within the band: "1.2% to 9.8% less", "3.1%
// less to 2.0% more". `ratio` is second over first.
std::string difference_text(const DifferenceBand& band, double ratio);
// "80% band of 301 measured pairs of schedules".
std::string pairs_text(const DifferenceBand& band);

}  // namespace pipesim
