// Which program has computed a result: two builds may differ in its last digit, or in more.
#pragma once

#include <string>

namespace pipesim {

// The version and the identities that the linker has given this program and that its module for
// SimGrid has by its contents.
std::string build_of_program(const std::string& version);

}  // namespace pipesim
