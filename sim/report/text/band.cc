#include "sim/report/text/band.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace pipesim {
namespace {

constexpr int kWithoutBand = 3;

struct Unit {
  double seconds;
  const char* name;
};
constexpr std::array<Unit, 4> kUnits{{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};

const Unit& unit_of(Seconds seconds) {
  const auto* const fitting = std::ranges::find_if(
      kUnits, [seconds](const Unit& unit) { return std::abs(seconds.value()) >= unit.seconds; });
  return fitting == kUnits.end() ? kUnits.back() : *fitting;
}

// A rate falls as time grows.
std::string falling(const Band& band, double value, const char* unit) {
  const int digits = digits_of(band);
  return fmt::format(", {} to {} {}", significant(value / band.high, digits),
                     significant(value / band.low, digits), unit);
}

}  // namespace

int digits_of(const std::optional<Band>& band) {
  if (!band) return kWithoutBand;
  const double width = std::clamp(band->half_width(), 1e-4, 1.0);
  constexpr double kRounding = 1e-9;
  return std::clamp(1 + static_cast<int>(std::ceil(-std::log10(width) - kRounding)), 2, 5);
}

int compared_digits(const std::optional<Band>& band) { return 1 + digits_of(band); }

std::string significant(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{:g}", value);
  constexpr double kLeastWritten = 1e-9;
  constexpr double kMostWritten = 1e15;
  const double size = std::abs(value);
  if (size < kLeastWritten || size >= kMostWritten) return fmt::format("{:.{}g}", value, digits);
  // Scientific notation rounds first, since rounding may add a digit.
  const std::string scientific = fmt::format("{:.{}e}", value, digits - 1);
  const int power = std::stoi(scientific.substr(scientific.find('e') + 1));
  const double rounded = std::stod(scientific);
  std::string text = fmt::format("{:.{}f}", rounded, std::max(0, digits - 1 - power));
  const size_t first = text.front() == '-' ? 1 : 0;
  for (size_t at = std::min(text.size(), text.find('.')); at > first + 3;)
    text.insert(at -= 3, 1, ',');
  return text;
}

std::string human(Seconds seconds, int digits) {
  const Unit& unit = unit_of(seconds);
  return fmt::format("{} {}", significant(seconds.value() / unit.seconds, digits), unit.name);
}

std::string range_text(const Band& band, const Uncertain& simulated) {
  const int digits = digits_of(band);
  const Unit& unit = unit_of(band.low * simulated.iteration);
  const auto end = [&](double factor) {
    return significant(factor * simulated.iteration.value() / unit.seconds, digits);
  };
  std::string text = fmt::format("{} to {} {}", end(band.low), end(band.high), unit.name);
  if (const auto& rate = simulated.tokens_per_second_per_gpu) {
    text += falling(band, *rate, "tokens/s/GPU");
  }
  if (const auto& mfu = simulated.mfu) {
    text += fmt::format(", {} {}% to {}%", simulated.causal ? "causal MFU" : "MFU",
                        significant(100 * *mfu / band.high, digits),
                        significant(100 * *mfu / band.low, digits));
    if (*mfu / band.low > 1) text += " (over 100%, which no GPU reaches)";
  }
  const auto rising = [&](const std::optional<double>& value, const char* what) {
    if (!value) return;
    text += fmt::format(", {} {} to {}", what, significant(band.low * *value, digits),
                        significant(band.high * *value, digits));
  };
  rising(simulated.days, "days");
  rising(simulated.price, "price");
  return text;
}

std::string band_line(const Scenario& scenario, const std::string& name,
                      const Uncertain& simulated) {
  if (!scenario.roofline) return "";
  if (!scenario.band)
    return "no measured run near this: how far off the seconds are is not known\n";
  const Band& band = *scenario.band;
  return fmt::format("{:.0f}% band from {} measured {} ({}): {} {}\n", 100 * kBandLevel, band.rows,
                     band.rows == 1 ? "run and its neighbours" : "runs", band.group, name,
                     range_text(band, simulated));
}

}  // namespace pipesim
