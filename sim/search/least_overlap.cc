#include "sim/search/least_overlap.h"

#include <algorithm>

#include "sim/execution/evaluate.h"

namespace pipesim {

double least_overlap(const Problem& problem) {
  const Placement& place = problem.placement;
  double least = 1;
  for (int d = 0; d < place.devices(); ++d) {
    for (int f = 0; f < place.chunks(); ++f) {
      const StageCost& forward = problem.stage(place.virtual_stage(d, f));
      for (int b = 0; b < place.chunks(); ++b) {
        const StageCost& backward = problem.stage(place.virtual_stage(d, b));
        const Seconds apart = forward.forward + backward.backward_input + backward.backward_weight;
        if (apart > Seconds(0))
          least = std::min(least, block_seconds(forward, backward).value_or(apart) / apart);
      }
    }
  }
  return least;
}

}  // namespace pipesim
