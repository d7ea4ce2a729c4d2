// Columns of text.
#pragma once

#include <string>
#include <vector>

namespace pipesim {

using Row = std::vector<std::string>;

// The first `left` columns to the left, all others to the right, two spaces between. Rows are as
// long as the first, which is not empty.
std::string aligned(const std::vector<Row>& rows, size_t left = 1);

}  // namespace pipesim
