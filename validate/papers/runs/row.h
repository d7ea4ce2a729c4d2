// A measured run as a table of runs has it, read with patience: keys that are missing, null or of
// another kind stay empty, since other people's tables have gaps. Which gaps keep a row out is for
// rule.h to say.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/read/yaml.h"

namespace pipesim::runs {

class Row {
 public:
  // `shared`: the keys of a table that hold for all of its rows.
  Row(std::string table, const YamlValue& row, const std::map<std::string, YamlValue>& shared);

  [[nodiscard]] const std::string& table() const { return table_; }
  [[nodiscard]] std::string id() const;

  // Empty where the row has no such key, or null.
  [[nodiscard]] std::string text(const std::string& key) const;
  // A number, also as "250k", "16M" or "47GB" (10^3, 10^6, the number alone).
  [[nodiscard]] std::optional<double> number(const std::string& key) const;
  // A whole number from 1 on.
  [[nodiscard]] std::optional<int> size(const std::string& key) const;
  [[nodiscard]] std::optional<bool> flag(const std::string& key) const;
  // Keys that nobody has asked for.
  [[nodiscard]] std::vector<std::string> unread() const;

 private:
  std::string table_;
  std::map<std::string, std::string> values_;
  mutable std::set<std::string> read_;
};

// The rows of all tables in the file's order; a table is a list of rows, or a map with `rows` and
// what holds for all of them. `about` is text. InputError where a table is neither.
std::vector<Row> read_rows(const YamlSource& source);

}  // namespace pipesim::runs
