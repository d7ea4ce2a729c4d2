// Refines programs of whole backwards as such: where BW takes less than B and W apart, or holds
// less.
#pragma once

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/search/refine.h"

namespace pipesim {

// The same as `refine`, but each backward stays one BW. Requires a program of whole backwards; one
// that does not keep the limit comes back as it is.
Program refine_whole(const Program& program, const Problem& problem, Bytes limit,
                     const RefineOptions& options);

}  // namespace pipesim
