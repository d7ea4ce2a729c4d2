#include "sim/core/error.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "sim/core/text.h"

namespace pipesim {
namespace {

// The part of a long line around the column, and the column within it.
std::pair<std::string_view, size_t> window(std::string_view line, int column) {
  constexpr size_t kWidth = 160;
  const auto at = static_cast<size_t>(column);
  if (line.size() <= kWidth) return {line, at};
  const size_t begin = at > kWidth / 2 ? std::min(at - kWidth / 2, line.size()) : 0;
  return {line.substr(begin, kWidth), at - begin};
}

std::string located(const Location& where, std::string_view message) {
  std::string text = shortened(where.file);
  if (where.line > 0) text += fmt::format(":{}:{}", where.line, where.column);
  text += text.empty() ? std::string(message) : fmt::format(": {}", message);
  if (!where.text.empty() && where.column > 0) {
    const auto [line, column] = window(where.text.view(), where.column);
    // Tabs stay tabs above the caret, so that it points at the right character in any terminal.
    std::string indent;
    for (size_t i = 0; i + 1 < column; ++i) {
      indent += i < line.size() && line[i] == '\t' ? '\t' : ' ';
    }
    text += fmt::format("\n  {}\n  {}^", line, indent);
  }
  return text;
}

}  // namespace

InputError::InputError(const Location& where, std::string_view message)
    : std::runtime_error(located(where, shortened(message))),
      where_(where),
      message_(shortened(message)) {}

}  // namespace pipesim
