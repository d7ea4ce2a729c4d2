#include "sim/sweep/decimal.h"

#include <cctype>
#include <fmt/format.h>
#include <string_view>

namespace pipesim {

std::string Decimal::text() const {
  std::int64_t left = digits;
  int fraction = places;
  for (; fraction > 0 && left % 10 == 0; --fraction) left /= 10;
  const std::string all = fmt::format("{:0{}}", left < 0 ? -left : left, fraction + 1);
  const std::string_view number = all;
  const size_t whole = all.size() - static_cast<size_t>(fraction);
  return fmt::format("{}{}{}{}{}{}", left < 0 ? "-" : "", number.substr(0, whole),
                     fraction > 0 ? "." : "", number.substr(whole), unit.empty() ? "" : " ", unit);
}

std::optional<std::int64_t> Decimal::digits_with(int all) const {
  std::int64_t scaled = digits;
  for (int i = places; i < all; ++i) {
    if (__builtin_mul_overflow(scaled, 10, &scaled)) return std::nullopt;
  }
  return scaled;
}

std::optional<Decimal> parse_decimal(const std::string& text) {
  Decimal decimal;
  size_t at = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative || (!text.empty() && text[0] == '+')) ++at;
  bool point = false;
  bool any = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !point) {
      point = true;
    } else if (std::isdigit(static_cast<unsigned char>(text[at])) != 0) {
      any = true;
      decimal.places += point ? 1 : 0;
      if (__builtin_mul_overflow(decimal.digits, 10, &decimal.digits) ||
          __builtin_add_overflow(decimal.digits, text[at] - '0', &decimal.digits)) {
        return std::nullopt;
      }
    } else {
      break;
    }
  }
  if (!any) return std::nullopt;
  if (negative) decimal.digits = -decimal.digits;
  const size_t unit = text.find_first_not_of(' ', at);
  if (unit != std::string::npos) decimal.unit = text.substr(unit);
  // An exponent is no unit.
  if (decimal.unit == text.substr(at) && !decimal.unit.empty() &&
      (decimal.unit[0] == 'e' || decimal.unit[0] == 'E' || decimal.unit[0] == '.')) {
    return std::nullopt;
  }
  return decimal;
}

std::optional<Decimal> product(const Decimal& a, const Decimal& b) {
  Decimal result{0, a.places + b.places, a.unit};
  if (__builtin_mul_overflow(a.digits, b.digits, &result.digits)) return std::nullopt;
  for (; result.places > 0 && result.digits % 10 == 0; --result.places) result.digits /= 10;
  return result;
}

}  // namespace pipesim
