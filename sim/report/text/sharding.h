// Weights and gradients that data ranks divide, for `pipesim show --costs`.
#pragma once

#include <string>

#include "sim/case/case.h"

namespace pipesim {

// A layer's gathers and scatters, and the seconds of them that the stages' passes wait for; empty
// where whole gradients are held. Requires Outline::setting.
std::string sharding_text(const Case& made);

}  // namespace pipesim
