#include "validate/calibration/csv_table.h"

#include <algorithm>
#include <utility>

namespace pipesim::calibration {
namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char letter : line) {
    if (letter == ',') {
      cells.emplace_back();
    } else {
      cells.back() += letter;
    }
  }
  return cells;
}

}  // namespace

CsvTable::CsvTable(const std::string& path, std::vector<std::string> columns)
    : path_(path), columns_(std::move(columns)), file_(path) {
  bool read = read_line();
  for (; read && text_.starts_with('#'); read = read_line()) comments_.push_back(text_.substr(1));
  if (!read) throw InputError({path, 0, 0, ""}, "cannot read the file");
  const auto names = cells_of(text_);
  for (const std::string& column : columns_) {
    const auto found = std::find(names.begin(), names.end(), column);
    if (found == names.end()) fail(fmt::format("expected a column '{}'", column));
    places_.push_back(static_cast<std::size_t>(found - names.begin()));
  }
}

bool CsvTable::next() {
  if (!read_line()) return false;
  cells_ = cells_of(text_);
  for (const std::size_t place : places_) {
    if (place >= cells_.size()) fail("this line is too short");
  }
  return true;
}

bool CsvTable::read_line() {
  if (!std::getline(file_, text_)) return false;
  if (text_.ends_with('\r')) text_.pop_back();
  ++line_;
  return true;
}

}  // namespace pipesim::calibration
