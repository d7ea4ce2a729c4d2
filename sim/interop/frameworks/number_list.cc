#include "sim/interop/frameworks/number_list.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace pipesim {
namespace {

// [a,b]*n and lists in brackets, joined by '+'.
class ListExpression {
 public:
  explicit ListExpression(std::string_view text) : text_(text) {}

  // False where the text is no such expression, or too long.
  bool read(std::vector<int>& to) { return sum(to, 0) && (skip(), at_ == text_.size()); }

 private:
  static constexpr size_t kMost = 1 << 16;
  static constexpr int kDepth = 16;

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '"' || text_[at_] == '\'')) {
      ++at_;
    }
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool number(int& value) {
    skip();
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    at_ = static_cast<size_t>(end - text_.data());
    return error == std::errc() && value >= 0;
  }
  bool sum(std::vector<int>& to, int depth) {
    if (depth > kDepth || !product(to, depth)) return false;
    while (take('+')) {
      if (!product(to, depth)) return false;
    }
    return true;
  }
  bool product(std::vector<int>& to, int depth) {
    std::vector<int> values;
    if (take('(')) {
      if (!sum(values, depth + 1) || !take(')')) return false;
    } else if (take('[')) {
      int value = 0;
      while (number(value)) {
        values.push_back(value);
        if (!take(',')) break;
      }
      if (!take(']')) return false;
    } else {
      return false;
    }
    int times = 1;
    if (take('*') && !number(times)) return false;
    if (values.empty()) return true;
    if (values.size() * static_cast<size_t>(times) + to.size() > kMost) return false;
    for (int i = 0; i < times; ++i) to.insert(to.end(), values.begin(), values.end());
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::vector<int> frequencies_of(const std::string& text, long length) {
  std::vector<int> values;
  int every = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), every);
  if (error == std::errc() && end == text.data() + text.size() && every > 0) {
    for (long i = 0; i < length; ++i) values.push_back(i % every == 0 ? 1 : 0);
    return values;
  }
  if (!ListExpression(text).read(values)) return {};
  return std::cmp_equal(values.size(), length) ? values : std::vector<int>{};
}

std::vector<long> numbers_of(const std::string& text) {
  std::vector<long> numbers;
  for (const char* at = text.data(); at < text.data() + text.size();) {
    long value = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), value);
    if (error == std::errc()) numbers.push_back(value);
    at = error == std::errc() ? end : at + 1;
  }
  return numbers;
}

}  // namespace pipesim
