#include "sim/band/columns.h"

#include <algorithm>
#include <boost/tokenizer.hpp>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <sstream>

namespace pipesim {
namespace {

std::vector<std::string> fields_of(const std::string& line, const Location& where) {
  try {
    const boost::tokenizer<boost::escaped_list_separator<char>> fields(line);
    return {fields.begin(), fields.end()};
  } catch (const boost::escaped_list_error& error) {
    throw InputError(where, fmt::format("is no line of a CSV file: {}", error.what()));
  }
}

std::vector<size_t> places_of(const std::vector<std::string>& header,
                              std::span<const char* const> columns, const Location& where) {
  std::vector<size_t> places;
  for (const char* column : columns) {
    const auto found = std::ranges::find(header, column);
    if (found == header.end()) throw InputError(where, fmt::format("has no column '{}'", column));
    places.push_back(static_cast<size_t>(found - header.begin()));
  }
  return places;
}

}  // namespace

std::vector<ColumnsRow> read_columns(const std::string& text, const std::string& name,
                                     std::span<const char* const> columns) {
  std::istringstream in(text);
  std::vector<ColumnsRow> rows;
  std::vector<size_t> places;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    const Location where{name, number, 1, line};
    const auto fields = fields_of(line, where);
    if (places.empty()) {
      places = places_of(fields, columns, where);
      continue;
    }
    if (fields.size() <= std::ranges::max(places)) throw InputError(where, "has too few fields");
    ColumnsRow& row = rows.emplace_back(ColumnsRow{{}, where});
    for (const size_t place : places) row.fields.push_back(fields[place]);
  }
  return rows;
}

double positive_number(const std::string& text, const Location& where) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !(value > 0) || !std::isfinite(value)) {
    throw InputError(where, fmt::format("expected a number greater than 0, not '{}'", text));
  }
  return value;
}

}  // namespace pipesim
