#include "sim/core/error.h"

#include <fmt/format.h>

namespace pipesim {
namespace {

std::string located(const Location& where, std::string_view message) {
  std::string text = where.file;
  if (where.line > 0) text += fmt::format(":{}:{}", where.line, where.column);
  text += text.empty() ? std::string(message) : fmt::format(": {}", message);
  if (!where.text.empty() && where.column > 0) {
    // Tabs stay tabs above the caret, so that it points at the right character in any terminal.
    std::string indent;
    for (int i = 0; i + 1 < where.column; ++i) {
      const auto at = static_cast<size_t>(i);
      indent += at < where.text.size() && where.text[at] == '\t' ? '\t' : ' ';
    }
    text += fmt::format("\n  {}\n  {}^", where.text, indent);
  }
  return text;
}

}  // namespace

InputError::InputError(const Location& where, std::string_view message)
    : std::runtime_error(located(where, message)), where_(where) {}

}  // namespace pipesim
