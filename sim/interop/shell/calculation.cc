#include "sim/interop/shell/calculation.h"

#include <algorithm>
#include <charconv>

#include "sim/interop/shell/state.h"

namespace pipesim {
namespace {

constexpr int kDeepestCalculation = 48;

struct Operator {
  std::string_view sign;
  int rank;
};
// Longer signs stand before their beginnings.
constexpr Operator kOperators[] = {{"**", 11}, {"<<", 8}, {">>", 8}, {"<=", 7}, {">=", 7},
                                   {"==", 6},  {"!=", 6}, {"&&", 2}, {"||", 1}, {"*", 10},
                                   {"/", 10},  {"%", 10}, {"+", 9},  {"-", 9},  {"<", 7},
                                   {">", 7},   {"&", 5},  {"^", 4},  {"|", 3}};

constexpr long kLargestFactor = 1L << 31;

long power(long base, long exponent) {
  long result = 1;
  for (long i = 0; i < std::min(exponent, 40L) && std::abs(result) < kLargestFactor; ++i) {
    result *= base;
  }
  return result;
}

std::optional<bool> related(std::string_view sign, long left, long right) {
  if (sign == "<") return left < right;
  if (sign == ">") return left > right;
  if (sign == "<=") return left <= right;
  if (sign == ">=") return left >= right;
  if (sign == "==") return left == right;
  if (sign == "!=") return left != right;
  if (sign == "&&") return left != 0 && right != 0;
  if (sign == "||") return left != 0 || right != 0;
  return std::nullopt;  // bits
}

}  // namespace

std::optional<long> ShellCalculation::value() {
  long result = 0;
  do {
    result = choice(0);
  } while (take(","));
  skip();
  if (at_ != text_.size()) known_ = false;
  return known_ ? std::optional(result) : std::nullopt;
}

void ShellCalculation::skip() {
  at_ = std::min(text_.find_first_not_of(" \t\r\n$\"{}", at_), text_.size());
}

bool ShellCalculation::take(std::string_view sign) {
  skip();
  if (text_.compare(at_, sign.size(), sign) != 0) return false;
  at_ += sign.size();
  return true;
}

long ShellCalculation::choice(int depth) {
  const long condition = binary(1, depth);
  if (!take("?")) return condition;
  const long yes = choice(depth + 1);
  if (!take(":")) known_ = false;
  const long no = choice(depth + 1);
  return condition != 0 ? yes : no;
}

// Precedence climbing.
long ShellCalculation::binary(int rank, int depth) {
  long left = unary(depth);
  for (;;) {
    skip();
    const auto* const found = std::ranges::find_if(kOperators, [&](const Operator& each) {
      return text_.compare(at_, each.sign.size(), each.sign) == 0;
    });
    if (found == std::end(kOperators) || found->rank < rank) return left;
    at_ += found->sign.size();
    left = applied(found->sign, left, binary(found->rank + 1, depth));
  }
}

long ShellCalculation::applied(std::string_view sign, long left, long right) {
  constexpr long kMost = 1L << 40;
  if ((sign == "/" || sign == "%") && right == 0) known_ = false;
  if (sign == "*" && (std::abs(left) > kLargestFactor || std::abs(right) > kLargestFactor)) {
    known_ = false;
  }
  if (!known_) return 0;
  left = std::clamp(left, -kMost, kMost);
  right = std::clamp(right, -kMost, kMost);
  if (sign == "**") return power(left, right);
  if (sign == "*") return left * right;
  if (sign == "/") return left / right;
  if (sign == "%") return left % right;
  if (sign == "+") return left + right;
  if (sign == "-") return left - right;
  const auto found = related(sign, left, right);
  if (!found) known_ = false;
  return static_cast<long>(found.value_or(false));
}

long ShellCalculation::unary(int depth) {
  if (depth > kDeepestCalculation) known_ = false;
  if (!known_) return 0;
  if (take("!")) return static_cast<long>(unary(depth + 1) == 0);
  if (take("++") || take("--")) return unary(depth + 1);
  if (take("-")) return -unary(depth + 1);
  if (take("+")) return unary(depth + 1);
  if (take("(")) {
    const long inner = choice(depth + 1);
    if (!take(")")) known_ = false;
    return inner;
  }
  return operand();
}

long ShellCalculation::operand() {
  skip();
  if (at_ < text_.size() && text_[at_] == kShellMarkBegin) {
    const size_t end = std::min(text_.find(kShellMarkEnd, at_), text_.size() - 1);
    unknown_ += text_.substr(at_, end + 1 - at_);
    at_ = end + 1;
    known_ = false;
    return 0;
  }
  size_t end = at_;
  while (end < text_.size() && is_shell_name(text_[end])) ++end;
  const std::string name(text_.substr(at_, end - at_));
  at_ = end;
  if (name.empty()) known_ = false;
  const bool digits = name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0;
  return digits ? number(name) : variable(name);
}

long ShellCalculation::number(const std::string& digits) {
  long value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) known_ = false;
  return value;
}

long ShellCalculation::variable(const std::string& name) {
  const size_t before = at_;
  if (take("=") && (at_ >= text_.size() || text_[at_] != '=')) {
    const long value = choice(1);
    if (known_) assign_(name, value);
    return value;
  }
  at_ = before;
  const std::string text = lookup_(name);
  if (!ShellScript::is_known(text)) {
    unknown_ += text;
    known_ = false;
    return 0;
  }
  const long value = text.empty() ? 0 : number(text);
  for (const char* sign : {"++", "--"}) {
    if (take(sign) && known_) assign_(name, value + (sign[0] == '+' ? 1 : -1));
  }
  for (const char* sign : {"+=", "-=", "*="}) {
    if (take(sign)) return changed_by(name, sign[0], value);
  }
  return value;
}

long ShellCalculation::changed_by(const std::string& name, char sign, long value) {
  const long result = applied(std::string_view(&sign, 1), value, choice(1));
  if (known_) assign_(name, result);
  return result;
}

}  // namespace pipesim
