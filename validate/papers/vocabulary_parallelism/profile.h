// What the artifact's measured passes say beside the model, per method.
#pragma once

#include <vector>

#include "models/hardware.h"
#include "validate/papers/timed_run.h"
#include "validate/papers/vocabulary_parallelism/host_runs.h"

namespace pipesim::vocabulary_parallelism {

// Measured over modelled seconds of all the method's runs; Redis takes the baseline's. Without any
// run, as the model has it.
//
// Layers: the stages between the ends. Output: of the baseline what the last stage takes longer
// than those; of a divided one S and T together. Input of a divided one: what IF and IB take beyond
// the model, which knows nothing of sorting and masking tokens. Interlaced passes hold the device
// for their collectives, which are taken off.
Profiled profiled_of(VocabularyPlacement method, const std::vector<HostRun>& runs,
                     const Hardware& hardware);

}  // namespace pipesim::vocabulary_parallelism
