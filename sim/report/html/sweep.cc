#include "sim/report/html/sweep.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/read/sweep_text.h"

namespace pipesim {
namespace {

using Json = nlohmann::ordered_json;

struct CsvRow {
  int line = 0;
  std::vector<std::string> cells;
};

// Rows of RFC 4180: cells in quotes may hold commas, line ends and doubled quotes.
std::vector<CsvRow> rows_of(const ReportInput& input) {
  std::vector<CsvRow> rows;
  CsvRow row{1, {""}};
  int line = 1;
  bool quoted = false;
  const auto end_row = [&] {
    const bool blank = row.cells.size() == 1 && row.cells.front().empty();
    if (!blank) rows.push_back(std::move(row));
    row = {line, {""}};
  };
  const std::string& text = input.text;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"') {
        row.cells.back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        row.cells.back() += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      row.cells.emplace_back();
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r') {
      row.cells.back() += c;
    }
  }
  if (quoted) throw InputError({input.path, row.line, 1, ""}, "a quote has no end");
  end_row();
  return rows;
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc() && end == text.data() + text.size();
  return all && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// Numbers where every cell is one or empty (and not all are empty), else texts.
Json column_json(const std::vector<CsvRow>& rows, size_t column, bool text) {
  bool numbers = !text;
  bool any = false;
  for (size_t r = 1; r < rows.size() && numbers; ++r) {
    const std::string& cell = rows[r].cells[column];
    any = any || !cell.empty();
    numbers = cell.empty() || number_in(cell).has_value();
  }
  Json values = Json::array();
  for (size_t r = 1; r < rows.size(); ++r) {
    const std::string& cell = rows[r].cells[column];
    if (cell.empty()) {
      values.push_back(nullptr);
    } else if (numbers && any) {
      values.push_back(*number_in(cell));
    } else {
      values.push_back(cell);
    }
  }
  return {{"name", rows.front().cells[column]}, {"values", std::move(values)}};
}

struct Table {
  Json columns = Json::array();
  Json keys = Json::array();
};

Table table_of(const ReportInput& input) {
  const auto rows = rows_of(input);
  if (rows.empty()) throw InputError({input.path, 1, 1, ""}, "is empty; expected columns");
  const auto& names = rows.front().cells;
  const auto schedule = std::ranges::find(names, "schedule");
  if (names.front() != "point" || schedule == names.end()) {
    throw InputError({input.path, 1, 1, ""},
                     "is no table of a sweep: expected the columns 'point', the swept keys and "
                     "'schedule'");
  }
  for (const CsvRow& row : rows) {
    if (row.cells.size() == names.size()) continue;
    throw InputError({input.path, row.line, 1, ""},
                     fmt::format("expected {} cells, not {}", names.size(), row.cells.size()));
  }
  Table table;
  for (auto key = names.begin() + 1; key != schedule; ++key) table.keys.push_back(*key);
  for (size_t c = 0; c < names.size(); ++c) {
    table.columns.push_back(column_json(rows, c, names[c] == "schedule" || names[c] == "reason"));
  }
  return table;
}

}  // namespace

Json sweep_json(const SweepFolder& sweep) {
  const SweepText text = read_sweep_text(sweep.scenario.path, sweep.scenario.text);
  Table results = table_of(sweep.results);
  Json schedules = Json::array();
  for (const auto& [name, flow] : text.schedules) {
    schedules.push_back({{"name", name}, {"value", flow}});
  }
  return {{"folder", sweep.path},       {"stopped", sweep.stopped},
          {"scenario", text.scenario},  {"cost", text.cost},
          {"schedules", schedules},     {"keys", results.keys},
          {"columns", results.columns}, {"failed", table_of(sweep.failed).columns}};
}

}  // namespace pipesim
