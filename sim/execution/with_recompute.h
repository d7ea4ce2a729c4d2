// Full activation recomputation as a transform of a program (Chen et al. 2016, arXiv 1604.06174;
// Korthikanti et al. 2022, arXiv 2205.05198): F keeps its input only, R runs it again before the
// backward.
#pragma once

#include <memory>

#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// The program in which the first `chunks` chunks of every device (all, if there are fewer)
// recompute: R of a unit immediately before its B or BW, or before the overlapped block that holds
// it. It runs while the device waits for the gradient. A virtual stage that recomputes already
// stays as it is; nothing else is moved. O(passes).
Program with_recompute(const Program& program, int chunks);

// The program in which the problem's chunks recompute. Where activations are copied to the host it
// stays, since copies were planned with what recomputes.
std::shared_ptr<const Program> recomputing(std::shared_ptr<const Program> program,
                                           const Problem& problem);

}  // namespace pipesim
