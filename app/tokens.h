// A number of tokens on the command line.
#pragma once

#include <string>

#include "sim/core/error.h"

namespace pipesim {

// "15T", "300B": K, M, B and T stand for 10^3 to 10^12. InputError at `where` for anything else.
double read_tokens(const std::string& text, const Location& where);

}  // namespace pipesim
