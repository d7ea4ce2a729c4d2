// Fields of a CSV row (RFC 4180).
#pragma once

#include <string>

namespace pipesim {

// Quoted where a comma, a quote or a line end would break the row.
std::string csv_field(const std::string& text);

}  // namespace pipesim
