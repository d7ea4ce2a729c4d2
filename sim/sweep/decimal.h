// Decimal numbers with a unit, in exact arithmetic: ranges and draws of a sweep consist of them,
// and are the same on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace pipesim {

// digits x 10^-places, and the unit: "17.5 ms" is {175, 1, "ms"}.
struct Decimal {
  std::int64_t digits = 0;
  int places = 0;
  std::string unit = {};

  // Without zeros at the end.
  [[nodiscard]] std::string text() const;
  // The digits where there are `all` places, at least its own; nothing where 64 bits do not hold
  // them.
  [[nodiscard]] std::optional<std::int64_t> digits_with(int all) const;
};

// "-12", "0.5", "17.5 ms"; no exponent.
std::optional<Decimal> parse_decimal(const std::string& text);

// Exactly, with the unit of `a`; nothing where 64 bits do not hold it.
std::optional<Decimal> product(const Decimal& a, const Decimal& b);

}  // namespace pipesim
