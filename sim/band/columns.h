// Rows of a CSV file by the names of its columns, and the numbers in them.
//
// The first line that is neither empty nor a comment ("# ...") names the columns; others than those
// asked for are left aside.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/core/error.h"

namespace pipesim {

struct ColumnsRow {
  std::vector<std::string> fields;  // one for each column asked for, in that order
  Location where;
};

// `name` is what messages call the text. InputError, with the line, where a column is missing or a
// row has too few fields. O(text).
std::vector<ColumnsRow> read_columns(const std::string& text, const std::string& name,
                                     std::span<const char* const> columns);

// A finite number greater than 0; InputError at `where` otherwise.
double positive_number(const std::string& text, const Location& where);

}  // namespace pipesim
