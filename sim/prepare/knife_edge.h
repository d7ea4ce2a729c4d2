// Says where a case's peak hangs on the exact bandwidth of its host link.
#pragma once

#include <string>

#include "sim/case/case.h"

namespace pipesim {

// One sentence about copies over a link 10% slower. It says that they would leave a peak of
// activations more than a quarter higher, or could not be planned. Empty where neither holds. Plans
// the case twice where it may copy; simulates nothing. Throws what make_program throws.
std::string knife_edge_of(const Case& made);

}  // namespace pipesim
