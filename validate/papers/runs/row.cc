#include "validate/papers/runs/row.h"

#include <cmath>
#include <cstdlib>
#include <utility>

namespace pipesim::runs {
namespace {

constexpr double kLargest = 1 << 24;

std::string text_of_value(const YamlValue& value) {
  if (value.is_null()) return "";
  return value.is_scalar() ? value.text() : value.one_line();
}

void read_table(const std::string& name, const YamlValue& table, std::vector<Row>& rows) {
  std::map<std::string, YamlValue> shared;
  if (table.is_list()) {
    for (const YamlValue& row : table.list()) rows.emplace_back(name, row, shared);
    return;
  }
  if (!table.is_map()) table.fail("expected a list of runs, or a map with 'rows'");
  std::optional<YamlValue> list;
  for (const auto& [key, value] : table.entries()) {
    if (key == "rows") {
      list = value;
    } else {
      shared.emplace(key, value);
    }
  }
  if (!list) table.fail("expected 'rows', a list of runs");
  for (const YamlValue& row : list->list()) rows.emplace_back(name, row, shared);
}

}  // namespace

Row::Row(std::string table, const YamlValue& row, const std::map<std::string, YamlValue>& shared)
    : table_(std::move(table)) {
  for (const auto& [key, value] : shared) values_[key] = text_of_value(value);
  for (const auto& [key, value] : row.entries()) values_[key] = text_of_value(value);
}

std::string Row::id() const { return text("id"); }

std::string Row::text(const std::string& key) const {
  read_.insert(key);
  const auto found = values_.find(key);
  return found == values_.end() ? "" : found->second;
}

std::optional<double> Row::number(const std::string& key) const {
  const std::string written = text(key);
  if (written.empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(written.c_str(), &end);
  if (end == written.c_str() || !std::isfinite(value)) return std::nullopt;
  if (*end == 'k' || *end == 'K') return 1e3 * value;
  return *end == 'M' ? 1e6 * value : value;
}

std::optional<int> Row::size(const std::string& key) const {
  const auto value = number(key);
  if (!value || *value < 1 || *value > kLargest || *value != std::floor(*value)) {
    return std::nullopt;
  }
  return static_cast<int>(*value);
}

std::optional<bool> Row::flag(const std::string& key) const {
  const std::string written = text(key);
  if (written == "true" || written == "True") return true;
  if (written == "false" || written == "False") return false;
  return std::nullopt;
}

std::vector<std::string> Row::unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : values_) {
    if (!read_.contains(key)) keys.push_back(key);
  }
  return keys;
}

std::vector<Row> read_rows(const YamlSource& source) {
  std::vector<Row> rows;
  for (const auto& [name, table] : source.root().entries()) {
    if (name != "about" && !table.is_null()) read_table(name, table, rows);
  }
  return rows;
}

}  // namespace pipesim::runs
