// A CSV file with named columns, read strictly.
//
// Lines that begin with '#' before the header are comments; columns that nobody asks for are passed
// over. InputError with file and line for a column that is missing, a short line, and a number that
// is none.
#pragma once

#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "sim/core/error.h"

namespace pipesim::calibration {

class CsvTable {
 public:
  CsvTable(const std::string& path, std::vector<std::string> columns);

  bool next();  // the next line; false when there is none

  [[nodiscard]] const std::vector<std::string>& comments() const { return comments_; }
  [[nodiscard]] const std::string& text(std::size_t column) const {
    return cells_[places_[column]];
  }
  template <class Number>
  [[nodiscard]] Number number(std::size_t column) const {
    return parsed<Number>(column, "a number of at least 0", [](Number n) { return n >= 0; });
  }
  template <class Number>
  [[nodiscard]] Number positive(std::size_t column) const {
    return parsed<Number>(column, "a number greater than 0", [](Number n) { return n > 0; });
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw InputError({path_, line_, 1, text_}, message);
  }

 private:
  bool read_line();

  template <class Number, class Accepts>
  [[nodiscard]] Number parsed(std::size_t column, const char* expected, Accepts accepts) const {
    const std::string& cell = text(column);
    Number value{};
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    const bool number = error == std::errc() && end == cell.data() + cell.size() &&
                        value <= std::numeric_limits<Number>::max();
    if (!number || !accepts(value)) {
      fail(fmt::format("{}: expected {}, not '{}'", columns_[column], expected, cell));
    }
    return value;
  }

  std::string path_;
  std::vector<std::string> columns_;
  std::vector<std::size_t> places_;
  std::ifstream file_;
  std::vector<std::string> comments_;
  std::string text_;
  std::vector<std::string> cells_;
  int line_ = 0;
};

}  // namespace pipesim::calibration
