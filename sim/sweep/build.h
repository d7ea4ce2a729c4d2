// Which program has computed a result: two builds may differ in its last digit, or in more.
#pragma once

#include <string>

namespace pipesim {

// The version, the identity that the linker has given this program (or libpipesim.so, or Python's
// module), and that of its module for SimGrid.
std::string build_of_program(const std::string& version);

}  // namespace pipesim
