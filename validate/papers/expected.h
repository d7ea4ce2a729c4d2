// The errors that the tables are known to have, so that a change which makes one worse is noticed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validate/papers/table_error.h"

namespace pipesim {

// As TableError states them: shares, or in the cells' unit.
struct ExpectedError {
  double median = 0;
  double worst = 0;
};

// By validation, by table.
using ExpectedErrors = std::map<std::string, std::map<std::string, ExpectedError>>;

// A table may be this much further off than recorded: 0.2 points.
inline constexpr double kErrorAllowance = 0.002;

// Of `<folder>/expected.yaml`, which is changed by hand only; none where there is no such file.
// InputError when it is not as expected.
std::optional<ExpectedErrors> read_expected(const std::string& folder);

// A sentence for every table of the validation that is further off than recorded, that nothing is
// recorded of, or that is recorded but has no cells.
std::vector<std::string> unexpected(const std::string& validation,
                                    const std::vector<TableError>& errors,
                                    const ExpectedErrors& expected);

}  // namespace pipesim
