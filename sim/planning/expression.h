// A formula of whole numbers, as descriptions of schedules have them: `3 * p - 2 - d`.
//
// Written as in Python, with parentheses, whole numbers and the names that its reader offers. The
// operators are `+ - * // %`, `< <= > >= == !=` (1 or 0), `and or not` and `a if condition else b`.
// The functions are `min(a, b, ...)`, `max(a, b, ...)` and `gcd(a, b)`. `//` and `%` round down, so
// that `x % n` is 0 to n - 1 for n > 0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {

class Expression {
 public:
  // `names` are those that may stand in it; `where` is the text's first letter. InputError at the
  // letter from which on it cannot be read. O(length).
  Expression(std::string text, Location where, std::span<const std::string> names);

  // `values` follow the order of `names`. InputError at the operator for a division by zero or a
  // value beyond 10^15. `if`, `and` and `or` compute only the operands they need.
  [[nodiscard]] long value(std::span<const long> values) const;
  // True if the text uses the `name`-th name.
  [[nodiscard]] bool mentions(std::size_t name) const;

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const Location& where() const { return where_; }

 private:
  friend class ExpressionParser;
  enum class Op : std::uint8_t {
    kNumber,
    kName,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kModulo,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kEqual,
    kUnequal,
    kAnd,
    kOr,
    kNot,
    kNegate,
    kIf,
    kMin,
    kMax,
    kGcd,
  };
  // Operands are nodes before it; `number` is a number's, or which name.
  struct Node {
    Op op = Op::kNumber;
    std::uint32_t at = 0;  // letter of the text
    long number = 0;
    std::uint32_t a = 0, b = 0, c = 0;
  };

  [[nodiscard]] long value_of(const Node& node, std::span<const long> values) const;
  [[nodiscard]] long combine(const Node& node, long a, long b) const;
  [[nodiscard]] long calculate(const Node& node, long a, long b) const;
  [[nodiscard]] Location place(std::size_t at) const;

  std::string text_;
  Location where_;
  std::vector<Node> nodes_;  // the last one is the whole
};

}  // namespace pipesim
