#include "validate/reproduce/pattern.h"

#include <stdexcept>

namespace pipesim::reproduce {

Pattern::Pattern(std::string_view text) {
  for (;;) {
    const size_t open = text.find_first_of("{}");
    before_.back() += text.substr(0, open);
    if (open == std::string_view::npos) return;
    const size_t close = text.find('}', open);
    if (text[open] == '}' || close == std::string_view::npos) {
      throw std::invalid_argument("a brace has no partner");
    }
    if (close == open + 1) throw std::invalid_argument("expected a name in the braces");
    if (!names_.empty() && before_.back().empty()) {
      throw std::invalid_argument("two names stand side by side: nothing says where one ends");
    }
    names_.emplace_back(text.substr(open + 1, close - open - 1));
    before_.emplace_back();
    text.remove_prefix(close + 1);
  }
}

std::optional<Fields> Pattern::match(std::string_view text) const {
  if (!text.starts_with(before_.front())) return std::nullopt;
  text.remove_prefix(before_.front().size());
  Fields fields;
  for (size_t i = 0; i < names_.size(); ++i) {
    const std::string& next = before_[i + 1];
    const bool last = i + 1 == names_.size();
    size_t end = text.size() - std::min(text.size(), next.size());
    if (!last) {
      end = text.find(next, 1);
    } else if (!text.ends_with(next)) {
      return std::nullopt;
    }
    if (end == std::string_view::npos || end == 0) return std::nullopt;
    fields[names_[i]] = text.substr(0, end);
    text.remove_prefix(end + next.size());
  }
  return text.empty() ? std::optional(fields) : std::nullopt;
}

std::string Pattern::fill(const Fields& fields, std::string* missing) const {
  std::string text = before_.front();
  for (size_t i = 0; i < names_.size(); ++i) {
    const auto found = fields.find(names_[i]);
    if (found == fields.end() && missing != nullptr) *missing = names_[i];
    text += found == fields.end() ? '{' + names_[i] + '}' : found->second;
    text += before_[i + 1];
  }
  return text;
}

}  // namespace pipesim::reproduce
