// Text in lines.
#pragma once

#include <string>

namespace pipesim {

// Lines of at most `width` columns, broken at blanks, without a line break behind the last.
std::string wrapped(const std::string& text, size_t width);

}  // namespace pipesim
