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
  bool relative = false;      // a measurement: its error is a share of the published value

  // simulated - published, in the unit of the cell (bubble rates: a fraction), or relative.
  [[nodiscard]] std::optional<double> error() const;
  // Whether the simulated value rounds to the published one (or below, where it may).
  [[nodiscard]] bool agrees() const;
};

struct Validation {
  std::string name;
  std::string title;
  // Reads `<folder>/<name>.yaml`; InputError when it is not as expected, located at `asked` when it
  // cannot be read.
  std::vector<Cell> (*compare)(const std::string& folder, const Location& asked);
};

// All of them, in the order in which `pipesim validate` runs them.
const std::vector<Validation>& validations();

// The cells for people, with a summary line per table; and as JSON: a list of
// {table, cell, published, simulated, error, note}.
std::string validation_table(const Validation& validation, const std::vector<Cell>& cells);
std::string validation_json(const std::vector<Cell>& cells);

}  // namespace pipesim
