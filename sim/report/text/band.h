// Bands for people: the interval beside a simulated time, and numbers with no more digits than it
// leaves them.
#pragma once

#include <optional>
#include <string>

#include "sim/core/units.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Significant digits of a number that is uncertain by the band: one more than its half-width leaves
// sure, 2 to 5; 3 without a band. Beside others of the same question, whose bias is the same, it
// has one more (`compared`).
int digits_of(const std::optional<Band>& band);
int compared_digits(const std::optional<Band>& band);

// With so many significant digits, and a comma between thousands: "1,230,000", "0.0123".
std::string significant(double value, int digits);
std::string human(Seconds seconds, int digits);  // "16.4 s"

// The bands of a simulated time and of numbers that follow from it; empty ones are left out.
struct Uncertain {
  Seconds iteration;
  std::optional<double> tokens_per_second_per_gpu = {};
  std::optional<double> mfu = {};
  bool causal = false;  // that MFU is the causal one
  std::optional<double> days = {};
  std::optional<double> price = {};
};

// "16.1 to 18.2 s, 905 to 1,020 tokens/s/GPU, MFU 44% to 50%". Requires a band.
std::string range_text(const Band& band, const Uncertain& simulated);

// A line for a modelled result, "80% band from 22 measured runs (h100-sxm fp8 dense): 1f1b takes
// ...". `name` names the result. Where no run is near, the line says so. Nothing where costs are
// given.
std::string band_line(const Scenario& scenario, const std::string& name,
                      const Uncertain& simulated);

}  // namespace pipesim
