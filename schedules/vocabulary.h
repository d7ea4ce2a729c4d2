// Orders with the passes of a sharded vocabulary, for the schedules that have them.
//
// Vocabulary Parallelism, arXiv 2411.05288, and its public code (sail-sg/VocabularyParallelism).
// The public code fails where a pipeline is never full; here the order for a few more microbatches
// is taken, and what belongs to those is left out.
#pragma once

#include <vector>

#include "sim/pipeline/schedule.h"

namespace pipesim {

// Requires one chunk and a sharded placement. O(passes).
Program vocabulary_1f1b(const Problem& problem);

// What 1F1B claims with them.
std::vector<VocabularySupport> vocabulary_1f1b_claims();

}  // namespace pipesim
