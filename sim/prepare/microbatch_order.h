// The order in which unequal microbatches are put into the pipeline (batch.order).
#pragma once

#include <string>
#include <vector>

#include "sim/case/case.h"

namespace pipesim {

// Permutes the microbatches of the case's problem, which are in the given order. By work: F, B and
// W of all stages. `dynapipe` and `search` execute candidates of the schedule's own order of passes
// by sim/execution/evaluate.h. The shortest within the activation limit wins, ties to the first;
// where none is within it, the least peak wins. At most 200 candidates or 10^7 passes, whichever is
// more. Throws what make_program does.
void order_microbatches(Case& made, MicrobatchOrder asked);

// The override that puts them in this order again: "batch.order=[2,0,1]".
std::string order_text(const std::vector<int>& order);

}  // namespace pipesim
