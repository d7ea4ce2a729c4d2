#include "sim/sweep/decimal.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <string_view>

namespace pipesim {
namespace {

// Appends a decimal digit; false when the number becomes too long.
bool append_digit(std::int64_t& digits, char digit) {
  return !__builtin_mul_overflow(digits, 10, &digits) &&
         !__builtin_add_overflow(digits, digit - '0', &digits);
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Digits with at most one point among them, from `at` on, which then stands behind them. Nothing
// without a digit, or with too many.
std::optional<Decimal> take_digits(std::string_view text, size_t& at) {
  Decimal decimal;
  bool point = false;
  bool any = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !point) {
      point = true;
      continue;
    }
    if (!is_digit(text[at])) break;
    any = true;
    decimal.places += point ? 1 : 0;
    if (!append_digit(decimal.digits, text[at])) return std::nullopt;
  }
  return any ? std::optional(decimal) : std::nullopt;
}

}  // namespace

std::string Decimal::text() const {
  std::int64_t left = digits;
  int fraction = places;
  for (; fraction > 0 && left % 10 == 0; --fraction) left /= 10;
  const std::string all = fmt::format("{:0{}}", left < 0 ? -left : left, fraction + 1);
  const std::string_view number = all;
  const size_t whole = all.size() - fraction;
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
  const bool negative = text.starts_with('-');
  size_t at = negative || text.starts_with('+') ? 1 : 0;
  auto decimal = take_digits(text, at);
  if (!decimal) return std::nullopt;
  if (negative) decimal->digits = -decimal->digits;
  const std::string_view rest = std::string_view(text).substr(at);
  // An exponent is no unit, nor is a second point.
  if (!rest.empty() && std::string_view("eE.").find(rest.front()) != std::string_view::npos) {
    return std::nullopt;
  }
  decimal->unit = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
  return decimal;
}

std::optional<Decimal> product(const Decimal& a, const Decimal& b) {
  Decimal result{0, a.places + b.places, a.unit};
  if (__builtin_mul_overflow(a.digits, b.digits, &result.digits)) return std::nullopt;
  for (; result.places > 0 && result.digits % 10 == 0; --result.places) result.digits /= 10;
  return result;
}

}  // namespace pipesim
