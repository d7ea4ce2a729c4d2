// A case with its batch: the microbatches in the order that is asked for, and their further draws.
#pragma once

#include "sim/case/case.h"

namespace pipesim {

// What make_case returns, with the order of `batch.order` and, where the batch is drawn several
// times, `Case::redrawn`. Throws what make_case and order_microbatches do.
Case batch_case(Outline outline, const Layout* balanced = nullptr);

}  // namespace pipesim
