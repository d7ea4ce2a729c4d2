// Measured runs by one of their own. Among the rows of one model, GPU, precision and software
// version, the one with fewest GPUs, then with the smallest id, anchors the others (sim/anchor).
#pragma once

#include "validate/papers/runs/runs.h"

namespace pipesim {

// Seconds of all others as simulated with its anchor; the row itself becomes one that is an anchor.
// Rows stay as they are where it cannot be anchored, with the reason. In parallel.
void anchor_runs(TrainingRuns& all);

}  // namespace pipesim
