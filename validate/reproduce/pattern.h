// A text with names in braces, such as "{model} p={p} {schedule}, GiB": read from a text of that
// form, or filled in.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipesim::reproduce {

// By name.
using Fields = std::map<std::string, std::string>;

class Pattern {
 public:
  Pattern() = default;
  // Throws std::invalid_argument where a brace has no partner, a name is empty, or two names stand
  // side by side.
  explicit Pattern(std::string_view text);

  // Each field as short as what follows allows, the last as long; none is empty. Nothing where the
  // text has another form. O(length).
  [[nodiscard]] std::optional<Fields> match(std::string_view text) const;
  // A name that `fields` lacks stays as it is written; `missing` gets it.
  [[nodiscard]] std::string fill(const Fields& fields, std::string* missing = nullptr) const;
  // In the order of the text.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  // The text is before_[0] {names_[0]} before_[1] {names_[1]} ... before_.back().
  std::vector<std::string> before_{""};
  std::vector<std::string> names_;
};

}  // namespace pipesim::reproduce
