// Joins the states that branches leave where it is not known which ran. Private to this folder.
#pragma once

#include <functional>

#include "sim/interop/shell/state.h"

namespace pipesim {

// Variables that differ keep the words at both ends and have a mark between, whose alternatives are
// the branches' own words; `names` decide which. `mark` makes the mark of an unknown.
ShellState merged(const std::vector<ShellState>& states, const std::vector<std::string>& names,
                  const std::function<std::string(ShellUnknown)>& mark);

}  // namespace pipesim
