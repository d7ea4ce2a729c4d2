// A table of rows and columns in one vector, row after row.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

namespace pipesim {

template <class T>
class Grid {
 public:
  Grid() = default;
  Grid(std::integral auto rows, std::integral auto columns, const T& value = {})
      : columns_(static_cast<std::size_t>(columns)),
        cells_(static_cast<std::size_t>(rows) * columns_, value) {}

  // Sets new cells in the same memory.
  void assign(std::integral auto rows, std::integral auto columns, const T& value) {
    columns_ = static_cast<std::size_t>(columns);
    cells_.assign(static_cast<std::size_t>(rows) * columns_, value);
  }

  [[nodiscard]] T& operator()(std::integral auto row, std::integral auto column) {
    return cells_[at(row, column)];
  }
  [[nodiscard]] const T& operator()(std::integral auto row, std::integral auto column) const {
    return cells_[at(row, column)];
  }
  [[nodiscard]] std::span<T> row(std::integral auto row) {
    return {cells_.data() + at(row, 0), columns_};
  }
  [[nodiscard]] std::span<const T> row(std::integral auto row) const {
    return {cells_.data() + at(row, 0), columns_};
  }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  // All cells, row after row.
  [[nodiscard]] std::vector<T>& cells() { return cells_; }
  [[nodiscard]] const std::vector<T>& cells() const { return cells_; }

  friend bool operator==(const Grid&, const Grid&) = default;

 private:
  [[nodiscard]] std::size_t at(std::integral auto row, std::integral auto column) const {
    return static_cast<std::size_t>(row) * columns_ + static_cast<std::size_t>(column);
  }

  std::size_t columns_ = 0;
  std::vector<T> cells_;
};

}  // namespace pipesim
