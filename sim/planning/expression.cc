#include "sim/planning/expression.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "sim/core/text.h"

namespace pipesim {
namespace {

constexpr long kMost = 1'000'000'000'000'000;
constexpr size_t kMostLetters = 10'000;
constexpr int kDeepest = 100;  // parentheses, signs and calls within each other

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

class ExpressionParser {
 public:
  using Op = Expression::Op;
  using Node = Expression::Node;

  ExpressionParser(Expression& into, std::span<const std::string> names)
      : into_(into), text_(into.text_), names_(names) {}

  void parse() {
    if (text_.size() > kMostLetters) {
      fail(0, fmt::format("a formula of more than {} letters", kMostLetters));
    }
    (void)conditional();
    skip_spaces();
    if (at_ < text_.size()) fail(at_, "expected an operator, or the end");
  }

 private:
  static constexpr std::pair<const char*, Op> kFunctions[] = {
      {"min", Op::kMin}, {"max", Op::kMax}, {"gcd", Op::kGcd}};

  [[noreturn]] void fail(size_t at, const std::string& message) const {
    throw InputError(into_.place(at), fmt::format("formula '{}': {}", text_, message));
  }

  std::uint32_t add(Op op, size_t at, std::uint32_t a = 0, std::uint32_t b = 0,
                    std::uint32_t c = 0) {
    into_.nodes_.push_back({op, static_cast<std::uint32_t>(at), 0, a, b, c});
    return static_cast<std::uint32_t>(into_.nodes_.size() - 1);
  }

  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  [[nodiscard]] std::string_view word() {
    skip_spaces();
    size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    return std::string_view(text_).substr(at_, end - at_);
  }
  bool take_word(std::string_view wanted) {
    if (word() != wanted) return false;
    at_ += wanted.size();
    return true;
  }
  bool take(std::string_view sign) {
    skip_spaces();
    if (!std::string_view(text_).substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }

  // a if condition else b
  std::uint32_t conditional() {
    const std::uint32_t value = disjunction();
    skip_spaces();
    const size_t at = at_;
    if (!take_word("if")) return value;
    const std::uint32_t condition = disjunction();
    if (!take_word("else")) fail(at_, "expected 'else' after 'if' and its condition");
    deepen();
    const std::uint32_t otherwise = conditional();
    --depth_;
    return add(Op::kIf, at, condition, value, otherwise);
  }
  std::uint32_t disjunction() {
    std::uint32_t left = conjunction();
    for (;;) {
      skip_spaces();
      const size_t at = at_;
      if (!take_word("or")) return left;
      left = add(Op::kOr, at, left, conjunction());
    }
  }
  std::uint32_t conjunction() {
    std::uint32_t left = negation();
    for (;;) {
      skip_spaces();
      const size_t at = at_;
      if (!take_word("and")) return left;
      left = add(Op::kAnd, at, left, negation());
    }
  }
  std::uint32_t negation() {
    skip_spaces();
    const size_t at = at_;
    if (!take_word("not")) return comparison();
    deepen();
    const std::uint32_t of = negation();
    --depth_;
    return add(Op::kNot, at, of);
  }
  std::uint32_t comparison() {
    constexpr std::pair<std::string_view, Op> kSigns[] = {
        {"<=", Op::kLessEqual}, {">=", Op::kGreaterEqual}, {"==", Op::kEqual},
        {"!=", Op::kUnequal},   {"<", Op::kLess},          {">", Op::kGreater}};
    const std::uint32_t left = sum();
    skip_spaces();
    const size_t at = at_;
    for (const auto& [sign, op] : kSigns) {
      if (take(sign)) return add(op, at, left, sum());
    }
    if (take("=")) fail(at, "two values are compared by '=='");
    return left;
  }
  std::uint32_t sum() {
    std::uint32_t left = product();
    for (;;) {
      skip_spaces();
      const size_t at = at_;
      if (take("+")) {
        left = add(Op::kAdd, at, left, product());
      } else if (take("-")) {
        left = add(Op::kSubtract, at, left, product());
      } else {
        return left;
      }
    }
  }
  std::uint32_t product() {
    std::uint32_t left = factor();
    for (;;) {
      skip_spaces();
      const size_t at = at_;
      if (take("*")) {
        left = add(Op::kMultiply, at, left, factor());
      } else if (take("//")) {
        left = add(Op::kDivide, at, left, factor());
      } else if (take("%")) {
        left = add(Op::kModulo, at, left, factor());
      } else if (take("/")) {
        fail(at, "whole numbers are divided by '//', which rounds down");
      } else {
        return left;
      }
    }
  }
  std::uint32_t factor() {
    skip_spaces();
    const size_t at = at_;
    if (!take("-")) return atom();
    deepen();
    const std::uint32_t of = factor();
    --depth_;
    return add(Op::kNegate, at, of);
  }
  std::uint32_t atom() {
    skip_spaces();
    const size_t at = at_;
    if (take("(")) {
      deepen();
      const std::uint32_t inner = conditional();
      --depth_;
      close(at);
      return inner;
    }
    if (at < text_.size() && is_digit(text_[at])) return number();
    const std::string name(word());
    if (name.empty()) fail(at, "expected a number, a name or '('");
    at_ += name.size();
    for (const auto& [function, op] : kFunctions) {
      if (name == function) return call(name, op, at);
    }
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) {
      fail(at, fmt::format("nothing is called '{}'{}", name, suggestion(name, valid_names())));
    }
    const std::uint32_t node = add(Op::kName, at);
    into_.nodes_.back().number = found - names_.begin();
    return node;
  }
  // Functions where '(' follows, else names.
  [[nodiscard]] std::vector<std::string> valid_names() const {
    const size_t next = text_.find_first_not_of(" \t", at_);
    if (next == std::string_view::npos || text_[next] != '(') return {names_.begin(), names_.end()};
    std::vector<std::string> functions;
    for (const auto& [function, op] : kFunctions) functions.emplace_back(function);
    return functions;
  }
  std::uint32_t number() {
    const size_t at = at_;
    long value = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
      value = 10 * value + (text_[at_] - '0');
      if (value > kMost) fail(at, "a number beyond 10^15");
    }
    const std::uint32_t node = add(Op::kNumber, at);
    into_.nodes_.back().number = value;
    return node;
  }
  // A function of two values, applied to the first and each further one in turn.
  std::uint32_t call(const std::string& name, Op op, size_t at) {
    if (!take("(")) fail(at_, fmt::format("expected '(' after {}", name));
    deepen();
    std::uint32_t value = conditional();
    int operands = 1;
    while (take(",")) {
      value = add(op, at, value, conditional());
      ++operands;
    }
    --depth_;
    skip_spaces();
    // {at: min(a, b)} ends at the comma.
    if (operands == 1 && at_ == text_.size()) {
      fail(at_, fmt::format("expected ',' or ')' in {}(: within braces or brackets a formula with "
                            "a comma stands in quotes",
                            name));
    }
    close(at);
    if (operands == 1) fail(at, fmt::format("{} takes two values or more", name));
    return value;
  }
  void close(size_t opened) {
    if (!take(")")) fail(at_, fmt::format("expected ')' for the '(' of letter {}", opened + 1));
  }
  void deepen() {
    if (++depth_ > kDeepest) fail(at_, fmt::format("nested more than {} deep", kDeepest));
  }

  Expression& into_;
  const std::string& text_;
  std::span<const std::string> names_;
  size_t at_ = 0;
  int depth_ = 0;
};

Expression::Expression(std::string text, Location where, std::span<const std::string> names)
    : text_(std::move(text)), where_(std::move(where)) {
  ExpressionParser(*this, names).parse();
}

long Expression::value(std::span<const long> values) const {
  return value_of(nodes_.back(), values);
}

bool Expression::mentions(std::size_t name) const {
  return std::ranges::any_of(nodes_, [name](const Node& node) {
    return node.op == Op::kName && node.number == static_cast<long>(name);
  });
}

long Expression::value_of(const Node& node, std::span<const long> values) const {
  const auto of = [&](std::uint32_t operand) { return value_of(nodes_[operand], values); };
  switch (node.op) {
    case Op::kNumber:
      return node.number;
    case Op::kName:
      return values[static_cast<size_t>(node.number)];
    case Op::kNot:
      return of(node.a) == 0 ? 1 : 0;
    case Op::kNegate:
      return -of(node.a);
    case Op::kAnd:
      return of(node.a) != 0 && of(node.b) != 0 ? 1 : 0;
    case Op::kOr:
      return of(node.a) != 0 || of(node.b) != 0 ? 1 : 0;
    case Op::kIf:
      return of(node.a) != 0 ? of(node.b) : of(node.c);
    default:
      return combine(node, of(node.a), of(node.b));
  }
}

long Expression::combine(const Node& node, long a, long b) const {
  switch (node.op) {
    case Op::kLess:
      return a < b ? 1 : 0;
    case Op::kLessEqual:
      return a <= b ? 1 : 0;
    case Op::kGreater:
      return a > b ? 1 : 0;
    case Op::kGreaterEqual:
      return a >= b ? 1 : 0;
    case Op::kEqual:
      return a == b ? 1 : 0;
    case Op::kUnequal:
      return a != b ? 1 : 0;
    case Op::kMin:
      return std::min(a, b);
    case Op::kMax:
      return std::max(a, b);
    case Op::kGcd:
      return std::gcd(a, b);
    default:
      return calculate(node, a, b);
  }
}

// Values within 10^15 cannot overflow a sum; a product is looked at before it is made.
long Expression::calculate(const Node& node, long a, long b) const {
  const auto fail = [&](const std::string& message) {
    throw InputError(place(node.at), fmt::format("formula '{}': {}", text_, message));
  };
  const bool divides = node.op == Op::kDivide || node.op == Op::kModulo;
  if (divides && b == 0) fail(fmt::format("{} is divided by 0", a));
  const bool large = node.op == Op::kMultiply && b != 0 && std::abs(a) > kMost / std::abs(b);
  long value = kMost + 1;
  if (node.op == Op::kAdd) value = a + b;
  if (node.op == Op::kSubtract) value = a - b;
  if (node.op == Op::kMultiply && !large) value = a * b;
  if (divides) {
    const long down = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
    value = node.op == Op::kDivide ? down : a - down * b;
  }
  if (std::abs(value) > kMost) fail("a value beyond 10^15");
  return value;
}

// A quoted text begins behind its quote; one of several lines is located as a whole.
Location Expression::place(std::size_t at) const {
  Location place = where_;
  if (place.column < 1) return place;
  size_t column = static_cast<size_t>(place.column) - 1;
  const std::string_view line = place.text.view();
  if (column < line.size() && (line[column] == '"' || line[column] == '\'')) ++column;
  if (!line.substr(std::min(column, line.size())).starts_with(text_)) {
    return place;
  }
  place.column = static_cast<int>(column + at) + 1;
  return place;
}

}  // namespace pipesim
