// The error of a table's cells: how many are simulated, and how far off they are.
#pragma once

#include <string>
#include <vector>

#include "validate/papers/cell.h"

namespace pipesim {

// How far a simulated cell is off: a share of the published value where errors are shares, else in
// the cell's unit. 0 for a cell that is lower where it may be.
double deviation(const Cell& cell);

// Medians are 0 of no cells.
struct TableError {
  std::string table;
  int published = 0;  // cells
  int simulated = 0;
  int agree = 0;
  int lower = 0;          // by more than the last printed digit, where that counts as agreeing
  bool relative = false;  // whether deviations are shares
  double median = 0;      // of deviations
  double worst = 0;
  double median_target = 0;  // 0: none
  double worst_target = 0;
  double worst_difference = 0;   // in the cells' unit
  double difference_target = 0;  // where that is more than `worst_target`
  int within_15 = 0;             // percent
  int within_30 = 0;
  std::vector<double> deviations;  // of the simulated cells, sorted

  [[nodiscard]] bool beyond_median() const;
  // Cells that are off by no more, up to rounding.
  [[nodiscard]] int within(double goal) const;
  // "24 of 24 cells simulated, median error 4.4% (target 6%), ..."
  [[nodiscard]] std::string text() const;
};

// In the order in which tables first appear. Cells that are neither shares nor bound to agree stand
// for information beside those that are, and are not counted then. O(n t) for n cells of t tables.
std::vector<TableError> table_errors(const std::vector<Cell>& cells);

}  // namespace pipesim
