// Orders with the passes of a sharded vocabulary, for the schedules that have them.
//
// Vocabulary Parallelism, arXiv 2411.05288, and its public code (sail-sg/VocabularyParallelism).
// The public code fails where a pipeline is never full. Here the order for a few more microbatches
// is taken, and their passes are left out.
#pragma once

#include <array>
#include <vector>

#include "sim/planning/schedule.h"

namespace pipesim {

// Requires one chunk and a sharded placement. O(passes).
Program vocabulary_1f1b(const Problem& problem);

// Claims of 1F1B with these passes.
std::vector<VocabularySupport> vocabulary_1f1b_claims();

// The slots of microbatch 0 on a device, of its F of chunk 0 and 1 and its B of chunk 1 and 0. The
// V-shape's block repeats every six slots.
using VeeBlock = std::array<int, 4> (*)(int devices, int device);

// Requires the V-shape and a sharded placement. O(passes + m log m).
Program vocabulary_v_half(const Problem& problem, VeeBlock block);

// Claims of V-Half with these passes.
std::vector<VocabularySupport> vocabulary_v_half_claims();

// True if the passes and collectives of the vocabulary take no time, as claims assume.
bool free_vocabulary(const Problem& problem);

}  // namespace pipesim
