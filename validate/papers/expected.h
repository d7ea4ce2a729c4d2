// The errors that the tables are known to have, so that a change which makes one worse is noticed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validate/papers/table_error.h"

namespace pipesim {

// Expected numbers of a TableError: shares, or in the cells' unit.
struct ExpectedError {
  double median = 0;
  double worst = 0;
  double goal = 0;     // what the median should be
  std::string reason;  // why it is recorded so far off that it could hardly fail
};

// From this median or this worst error on, a record needs a reason: with nothing simulated all
// cells would be off by 1.
inline constexpr double kMedianNeedsReason = 0.5;
inline constexpr double kWorstNeedsReason = 1;

// By validation, by table.
using ExpectedErrors = std::map<std::string, std::map<std::string, ExpectedError>>;

// A table may be this much further off than recorded: 0.2 points.
inline constexpr double kErrorAllowance = 0.002;

// Reads `<folder>/expected.yaml`, which is changed by hand only; none where there is no such file.
// InputError when it is not as expected, or lacks a reason.
std::optional<ExpectedErrors> read_expected(const std::string& folder);

// A sentence for every table of the validation that is further off than recorded, that nothing is
// recorded of, or that is recorded but has no cells.
std::vector<std::string> unexpected(const std::string& validation,
                                    const std::vector<TableError>& errors,
                                    const ExpectedErrors& expected);

// The record of a table, within `expected`; nullptr where there is none.
const ExpectedError* recorded_of(const std::optional<ExpectedErrors>& expected,
                                 const std::string& validation, const std::string& table);
const ExpectedError* recorded_of(std::optional<ExpectedErrors>&& expected,
                                 const std::string& validation, const std::string& table) = delete;

// "recorded 3.2%, worst 13.1%; goal 3%: missed, 40 of 78 cells within it; reason"
std::string goal_text(const TableError& error, const ExpectedError& recorded);

// How many tables, and how many of their cells, are as their goals say.
struct GoalsMet {
  int tables = 0;
  int tables_met = 0;
  int cells = 0;
  int cells_met = 0;

  void add(const TableError& error, const ExpectedError& recorded);
  [[nodiscard]] std::string text() const;
};

}  // namespace pipesim
