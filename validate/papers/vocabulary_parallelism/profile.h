// Corrections to the model from the artifact's measured passes, per method.
#pragma once

#include <vector>

#include "models/hardware.h"
#include "validate/papers/timed_run.h"
#include "validate/papers/vocabulary_parallelism/host_runs.h"

namespace pipesim::vocabulary_parallelism {

// Measured over modelled seconds of the method's runs with sequences of this length, or of all
// where none is as long; Redis takes the baseline's. Without any run, as the model has it.
//
// Layers: the stages between the ends; the baseline takes those of interlaced runs, whose stages
// always compute, as its last one does. Output: of the baseline what the last stage takes longer
// than those; of a divided one S and T together; a factor and, where runs have several
// vocabularies, what every token takes beyond it. Input of a divided one: what IF and IB take
// beyond the model, which knows nothing of sorting and masking tokens. Interlaced passes hold the
// device for their collectives, which are taken off.
Profiled profiled_of(VocabularyPlacement method, int seq, const std::vector<HostRun>& runs,
                     const Hardware& hardware);

}  // namespace pipesim::vocabulary_parallelism
