// Comparisons of the simulator with published figures: the tables of a paper, cell by cell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {

struct Cell {
  std::string table;
  std::string cell;
  double published = 0;
  std::optional<double> simulated;  // absent: not modelled, `note` says why
  std::string note;
  bool must_agree = false;    // to the printed digits; the validation fails when it does not
  bool may_be_lower = false;  // agreeing includes beating: an automatic schedule's bubble
  int digits = 4;             // decimals that the paper prints
  // Measured values: errors are shares of the published value. `must_agree` then means within
  // `worst`, or within `within` in the unit of the cell, and the median over a table's cells within
  // `median` (0: no such target).
  bool relative = false;
  double worst = 0;
  double within = 0;
  double median = 0;

  // simulated - published, in the unit of the cell (bubble rates: a fraction).
  [[nodiscard]] std::optional<double> error() const;
  // simulated / published - 1.
  [[nodiscard]] std::optional<double> relative_error() const;
  // Whether the simulated value rounds to the published one (or below, where it may); of a measured
  // value whether it is within `worst`.
  [[nodiscard]] bool agrees() const;
};

struct Validation {
  std::string name;
  std::string title;
  // Reads the file `paper_file(folder, name)`; InputError when it is not as expected, located at
  // `asked` when it cannot be read.
  std::vector<Cell> (*compare)(const std::string& folder, const Location& asked);
};

struct Compared {
  const Validation* validation = nullptr;
  std::vector<Cell> cells;
};

// All of them, in the order in which `pipesim validate` runs them.
const std::vector<Validation>& validations();

// Whether a cell that must agree does not, or a table is beyond its median.
bool missed(const std::vector<Cell>& cells);

// The cells for people, with a summary line per table; and as JSON: a list of
// {paper, table, cell, published, simulated, error, note}, relative_error where errors are shares.
std::string validation_table(const Validation& validation, const std::vector<Cell>& cells);
std::string validation_json(const std::vector<Compared>& all);

}  // namespace pipesim
