#include "sim/anchor/fitted_factor.h"

#include <cmath>
#include <fmt/format.h>

#include "sim/core/error.h"

namespace pipesim {

// Seconds are piecewise linear in the factor: false position, each end's excess halved when it has
// stood twice (Illinois), is there after a few calls.
double fitted_factor(Seconds measured, const std::function<Seconds(double factor)>& seconds) {
  constexpr double kLeast = 0.05;
  constexpr double kMost = 20;
  constexpr double kEnough = 1e-12;
  constexpr int kCalls = 100;
  const auto excess = [&](double factor) { return seconds(factor) / measured - 1; };
  double low = kLeast;
  double high = kMost;
  double below = excess(low);
  double above = excess(high);
  if (below > 0 || above < 0) {
    throw InfeasibleError(
        fmt::format("no factor from {} to {} gives {} s", kLeast, kMost, measured.value()));
  }
  double factor = low;
  int side = 0;
  for (int call = 0; call < kCalls; ++call) {
    factor = above - below > 0 ? (low * above - high * below) / (above - below) : low;
    const double at = excess(factor);
    if (std::abs(at) < kEnough) break;
    if (at < 0) {
      low = factor;
      below = at;
      if (side < 0) above /= 2;
      side = -1;
    } else {
      high = factor;
      above = at;
      if (side > 0) below /= 2;
      side = 1;
    }
  }
  return factor;
}

}  // namespace pipesim
