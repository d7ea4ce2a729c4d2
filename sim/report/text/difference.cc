#include "sim/report/text/difference.h"

#include <cmath>
#include <fmt/format.h>

#include "sim/band/band.h"

namespace pipesim {

std::string difference_text(const DifferenceBand& band, double ratio) {
  const double low = ratio * band.low(ratio) - 1;
  const double high = ratio * band.high(ratio) - 1;
  const auto percent = [](double share) { return fmt::format("{:.1f}%", 100 * std::abs(share)); };
  if (low < 0 && high > 0) return fmt::format("{} less to {} more", percent(low), percent(high));
  return high <= 0 ? fmt::format("{} to {} less", percent(high), percent(low))
                   : fmt::format("{} to {} more", percent(low), percent(high));
}

std::string pairs_text(const DifferenceBand& band) {
  return fmt::format("{:.0f}% band of {} measured pairs of schedules", 100 * kBandLevel,
                     band.pairs);
}

}  // namespace pipesim
