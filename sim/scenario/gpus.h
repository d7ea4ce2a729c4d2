// How many GPUs a run takes.
#pragma once

#include "sim/scenario/scenario.h"

namespace pipesim {

// Ranks of one replica, and of all data-parallel ones: the world size.
inline long gpus_of_replica(const ParallelSizes& sizes) {
  return 1L * sizes.tensor * sizes.context * sizes.pipeline;
}
inline long gpus_of(const ParallelSizes& sizes) { return gpus_of_replica(sizes) * sizes.data; }

}  // namespace pipesim
