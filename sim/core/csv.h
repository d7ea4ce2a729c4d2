// Fields of a CSV row (RFC 4180).
#pragma once

#include <string>

namespace pipesim {

// Quoted where a comma, a quote or a line end would break the row. Text that a spreadsheet would
// compute (it begins with = + - @ and is no number) gets an apostrophe before it, which makes it
// text there.
std::string csv_field(const std::string& text);

}  // namespace pipesim
