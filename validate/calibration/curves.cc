#include "validate/calibration/curves.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <fstream>
#include <string_view>
#include <utility>

#include "sim/core/error.h"

namespace pipesim::calibration {
namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char letter : line) {
    if (letter == ',') {
      cells.emplace_back();
    } else if (letter != '\r') {
      cells.back() += letter;
    }
  }
  return cells;
}

// Lines of a file with named columns.
class Table {
 public:
  Table(const std::string& path, std::vector<std::string> columns)
      : path_(path), columns_(std::move(columns)), file_(path) {
    std::string header;
    if (!file_ || !std::getline(file_, header)) {
      throw InputError({path, 0, 0, ""}, "cannot read the file");
    }
    line_ = 1;
    text_ = header;
    const auto names = cells_of(header);
    for (const std::string& column : columns_) {
      const auto found = std::find(names.begin(), names.end(), column);
      if (found == names.end()) fail(fmt::format("expected a column '{}'", column));
      places_.push_back(static_cast<std::size_t>(found - names.begin()));
    }
  }

  bool next() {
    if (!std::getline(file_, text_)) return false;
    ++line_;
    cells_ = cells_of(text_);
    for (const std::size_t place : places_) {
      if (place >= cells_.size()) fail("this line is too short");
    }
    return true;
  }

  [[nodiscard]] const std::string& text(std::size_t column) const {
    return cells_[places_[column]];
  }
  // More than 0.
  template <class Number>
  [[nodiscard]] Number positive(std::size_t column) const {
    const std::string& cell = text(column);
    Number value{};
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size() || !(value > 0)) {
      fail(fmt::format("{}: expected a number greater than 0, not '{}'", columns_[column], cell));
    }
    return value;
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw InputError({path_, line_, 1, text_}, message);
  }

 private:
  std::string path_;
  std::vector<std::string> columns_;
  std::vector<std::size_t> places_;
  std::ifstream file_;
  std::string text_;
  std::vector<std::string> cells_;
  int line_ = 0;
};

CollectiveKind kind_of(const Table& table) {
  static const std::array<std::pair<std::string_view, CollectiveKind>, 4> kNames{
      {{"all_reduce", CollectiveKind::kAllReduce},
       {"all_gather", CollectiveKind::kAllGather},
       {"reduce_scatter", CollectiveKind::kReduceScatter},
       {"alltoall", CollectiveKind::kAllToAll}}};
  for (const auto& [name, kind] : kNames) {
    if (table.text(0) == name) return kind;
  }
  table.fail(
      fmt::format("'{}' is no collective; valid: all_reduce, all_gather, reduce_scatter, "
                  "alltoall",
                  table.text(0)));
}

}  // namespace

std::vector<MatmulRow> read_matmuls(const std::string& path) {
  Table table(path, {"m", "n", "k", "latency_ms"});
  std::vector<MatmulRow> rows;
  while (table.next()) {
    rows.push_back({{.m = table.positive<std::int64_t>(0),
                     .n = table.positive<std::int64_t>(1),
                     .k = table.positive<std::int64_t>(2)},
                    Seconds(table.positive<double>(3) * 1e-3)});
  }
  return rows;
}

std::vector<CollectiveRow> read_collectives(const std::string& path) {
  Table table(path, {"op", "gpus", "bytes", "latency_us"});
  std::vector<CollectiveRow> rows;
  while (table.next()) {
    rows.push_back({kind_of(table), table.positive<int>(1), Bytes(table.positive<double>(2)),
                    Seconds(table.positive<double>(3) * 1e-6)});
  }
  return rows;
}

}  // namespace pipesim::calibration
