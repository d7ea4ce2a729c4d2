// Comparisons of the simulator with published figures: the tables of a paper, cell by cell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "validate/papers/cell.h"
#include "validate/papers/expected.h"

namespace pipesim {

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

// True if a cell that must agree does not, or a table is beyond its median.
bool missed(const std::vector<Cell>& cells);

// The cells for people, with a summary line per table and what is recorded of it; and as JSON: a
// list of {paper, table, cell, published, simulated, error, note}, relative_error where errors are
// shares.
std::string validation_table(const Validation& validation, const std::vector<Cell>& cells,
                             const std::optional<ExpectedErrors>& expected);
std::string validation_json(const std::vector<Compared>& all);

}  // namespace pipesim
