// The order in which unequal microbatches are put into the pipeline (batch.order), and cases that
// have it.
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

// The case of make_case with the order of `batch.order` and, where the batch is drawn several
// times, `Case::redrawn`. Throws what make_case and order_microbatches do.
Case batch_case(Outline outline, const Layout* balanced = nullptr);

// The override that puts them in this order again: "batch.order=[2,0,1]".
std::string order_text(const std::vector<int>& order);

}  // namespace pipesim
