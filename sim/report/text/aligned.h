// Columns of text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipesim {

using Row = std::vector<std::string>;

// The first `left` columns to the left, all others to the right, two spaces between. Rows are as
// long as the first, which is not empty.
std::string aligned(const std::vector<Row>& rows, size_t left = 1);

// Bytes of the longest line.
size_t widest_line(std::string_view text);

}  // namespace pipesim
