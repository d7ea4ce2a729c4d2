#include "sim/interop/shell/conditions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fnmatch.h>
#include <regex>

namespace pipesim {
namespace {

constexpr int kDeepestTest = 32;

std::optional<long> number_of(const std::string& text) {
  const size_t begin = std::min(text.find_first_not_of(" +"), text.size());
  long value = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<bool> ordered(const std::string& sign, long left, long right) {
  if (sign == "-eq") return left == right;
  if (sign == "-ne") return left != right;
  if (sign == "-lt") return left < right;
  if (sign == "-le") return left <= right;
  if (sign == "-gt") return left > right;
  if (sign == "-ge") return left >= right;
  return std::nullopt;
}

bool is_sign(const std::string& word) {
  static constexpr std::array<std::string_view, 12> kSigns{
      "=", "==", "!=", "=~", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
  return std::ranges::count(kSigns, word) > 0;
}

std::optional<bool> finds(const std::string& text, const std::string& expression) {
  constexpr size_t kMost = 1000;  // the library's matcher recurses
  if (text.size() > kMost || expression.size() > kMost) return std::nullopt;
  try {
    return std::regex_search(text, std::regex(expression, std::regex::extended));
  } catch (const std::regex_error&) {
    return std::nullopt;
  }
}

}  // namespace

// The words between [ and ].
std::vector<TestWord> words_of_test(const ShellItems& words) {
  std::vector<TestWord> test;
  const size_t end = words.size() - (words.back().text == "]" ? 1 : 0);
  for (size_t i = 1; i < end; ++i) {
    std::string escaped;
    for (const char c : words[i].text) {
      if (std::string_view("*?[]\\+@!|()").find(c) != std::string_view::npos) escaped += '\\';
      escaped += c;
    }
    test.push_back({words[i].text, escaped});
  }
  return test;
}

ShellCondition joined(const ShellCondition& a, const ShellCondition& b, bool both) {
  const Truth decides = both ? Truth::kFalse : Truth::kTrue;
  if (a.truth == decides) return a;
  if (b.truth == decides) return b;
  if (a.truth != Truth::kUnknown && b.truth != Truth::kUnknown) {
    ShellCondition known = b;
    known.assumed = a.assumed || b.assumed;
    known.names.insert(known.names.end(), a.names.begin(), a.names.end());
    return known;
  }
  ShellCondition unknown{Truth::kUnknown, a.names, false};
  unknown.names.insert(unknown.names.end(), b.names.begin(), b.names.end());
  return unknown;
}

ShellCondition ShellTest::value() {
  if (words_.empty()) return ShellCondition::of(false);
  ShellCondition found = either(0);
  return at_ == words_.size() ? found : ShellCondition{Truth::kUnknown, found.names, false};
}

bool ShellTest::take(std::string_view a, std::string_view b) {
  if (at_ >= words_.size() || (words_[at_].text != a && words_[at_].text != b)) return false;
  ++at_;
  return true;
}

ShellCondition ShellTest::either(int depth) {
  ShellCondition left = both(depth);
  while (take("||", "-o")) left = joined(left, both(depth), false);
  return left;
}

ShellCondition ShellTest::both(int depth) {
  ShellCondition left = negation(depth);
  while (take("&&", "-a")) left = joined(left, negation(depth), true);
  return left;
}

ShellCondition ShellTest::negation(int depth) {
  if (depth > kDeepestTest) return {};
  if (words_.size() - at_ > 1 && take("!", "!")) return negation(depth + 1).negated();
  return primary(depth);
}

ShellCondition ShellTest::primary(int depth) {
  if (at_ >= words_.size()) return {};
  if (!is_sign(ahead(1)) && take("(", "\\(")) {
    const ShellCondition inside = either(depth + 1);
    return take(")", "\\)") ? inside : ShellCondition{};
  }
  const std::string first = words_[at_++].text;
  if (is_sign(ahead()) && at_ + 1 < words_.size()) {
    const std::string sign = ahead();
    at_ += 2;
    return binary(first, sign, words_[at_ - 1]);
  }
  if (first.size() == 2 && first[0] == '-' && at_ < words_.size() && ahead() != "&&" &&
      ahead() != "||" && ahead() != ")") {
    return unary(first[1], words_[at_++].text);
  }
  return unary('n', first);
}

ShellCondition ShellTest::unknown(const std::string& text) const {
  return {Truth::kUnknown, knowledge_.names(text), false};
}

ShellCondition ShellTest::unary(char letter, const std::string& text) const {
  if (letter == 'z' || letter == 'n') {
    if (knowledge_.unset(text)) {
      return {letter == 'z' ? Truth::kTrue : Truth::kFalse, knowledge_.names(text), true};
    }
    // A text beside a mark is not empty, whatever the mark stands for.
    const bool known = ShellScript::is_known(text);
    if (!known && text.front() == kShellMarkBegin && text.back() == kShellMarkEnd)
      return unknown(text);
    return ShellCondition::of((letter == 'z') == text.empty());
  }
  return unknown(text);  // files, terminals
}

ShellCondition ShellTest::binary(const std::string& left, const std::string& sign,
                                 const TestWord& right) const {
  if (!ShellScript::is_known(left + right.text)) return unknown_pair(left, sign, right.text);
  std::optional<bool> found;
  if (sign == "=" || sign == "==" || sign == "!=") {
    const bool same = fnmatch(right.pattern.c_str(), left.c_str(), FNM_EXTMATCH) == 0;
    found = same == (sign != "!=");
  } else if (sign == "=~") {
    found = finds(left, right.text);
  } else if (sign == "<" || sign == ">") {
    found = sign == "<" ? left < right.text : left > right.text;
  } else if (const auto a = number_of(left), b = number_of(right.text); a && b) {
    found = ordered(sign, *a, *b);
  }
  return found ? ShellCondition::of(*found) : ShellCondition{};
}

// A comparison with nothing, or of x"$A" with x, asks whether A is set.
ShellCondition ShellTest::unknown_pair(const std::string& left, const std::string& sign,
                                       const std::string& right) const {
  const bool equality = sign == "=" || sign == "==" || sign == "!=";
  if (equality || sign == "-eq" || sign == "-ne") knowledge_.compared(left, right);
  const bool beside = right.size() == 1 && left.size() > 1 && left[0] == right[0];
  if (!equality || (!right.empty() && !beside)) return unknown(left + right);
  const ShellCondition empty = unary('z', left.substr(right.size()));
  return sign == "!=" ? empty.negated() : empty;
}

}  // namespace pipesim
