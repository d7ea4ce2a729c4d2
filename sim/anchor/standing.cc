#include "sim/anchor/standing.h"

#include <cmath>
#include <fmt/format.h>

#include "sim/core/text.h"

namespace pipesim {
namespace {

// Rounded up, so that nothing outside the band reads 0%.
std::string share_text(double share) { return fmt::format("{:.0f}%", std::ceil(100 * share)); }

}  // namespace

double outside(double measured, double low, double high) {
  if (measured > high) return measured / high - 1;
  return measured < low ? measured / low - 1 : 0;
}

double outside_band(Seconds measured, Seconds simulated, const std::optional<Band>& band) {
  if (!band) return 0;
  return outside(measured / simulated, band->low, band->high);
}

std::string standing_text(Seconds measured, Seconds simulated, const std::optional<Band>& band) {
  if (!band) return "no measured run is near: nothing says whether it is usual";
  const std::string like =
      fmt::format("the band of {} runs like it, {} to {} ({})", band->rows,
                  human(band->low * simulated), human(band->high * simulated), band->group);
  const double by = outside_band(measured, simulated, band);
  if (by == 0) return "inside " + like;
  if (by > 0) {
    return fmt::format("slower than {} by {}: check power limit, precision, network, data loading",
                       like, share_text(by));
  }
  return fmt::format("faster than {} by {}: check sizes, batch, precision, and what a step is",
                     like, share_text(-by));
}

std::string standing_text(Bytes measured, Bytes simulated, const MemoryBand& band) {
  const std::string like =
      fmt::format("the band {} to {}", human(band.low * simulated), human(band.high * simulated));
  const double by = outside(measured / simulated, band.low, band.high);
  if (by == 0) return "inside " + like;
  return fmt::format(
      "{} {} by {}: check {}", by > 0 ? "more than" : "less than", like, share_text(std::abs(by)),
      "recomputation, precision of states, sharding, and that ranks of all stages log");
}

}  // namespace pipesim
