// Activation offload as PipeOffload's authors plan it (Wan et al. 2025, arXiv 2503.01328, section
// 4; sail-sg/zero-bubble-pipeline-parallelism, offloading.py, held to it by
// tests/golden/offload_test).
//
// Devices 2k and 2k+1 share a PCIe switch and take turns. Time is cut into slots as long as a copy;
// in each, one of the two copies out and the other copies in. A copy out takes the first slot of
// its device after its F. A copy in takes the last one that ends one B before its own. An
// activation that lives no longer than six slots stays. Before the first copy in, copies out of the
// pair follow each other without slots, each with the link to itself. Forwards between the first F
// of the last chunk and the first B start as late as they can.
//
// The plan holds by the order of passes, not by the clock. A pass waits for the copy out planned to
// end before it, and a copy in follows the pass planned before it.
#pragma once

#include <vector>

#include "sim/execution/pass_times.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// Activations of the first `chunks` chunks of every device may leave. `times` are those of the
// plan. Copies last as those of most stages do; where these take no time none are planned. For
// programs of F, B, BW and W on an even number of devices. Throws InfeasibleError where an
// activation has no slot to come back in.
Program with_published_offload(const Program& program, const Problem& problem, int chunks,
                               PassTimes times);

// Each device's peak of activations under such a plan, by the order of its passes, in which the
// authors' runtime allocates and PyTorch counts. Bytes go where a pass waits for the copy out. They
// return right after the pass that the copy in follows.
std::vector<Bytes> peaks_by_order(const Program& program, const Problem& problem);

// The median over stages.
double typical_seconds(const Problem& problem, Seconds (*seconds)(const StageCost&));

}  // namespace pipesim
