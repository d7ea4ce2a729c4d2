#include "sim/planning/least_overlap.h"

#include <algorithm>

#include "sim/execution/evaluate.h"
#include "sim/pipeline/unequal_units.h"

namespace pipesim {

double least_overlap(const Problem& problem) {
  const Placement& place = problem.placement;
  double least = 1;
  for (int d = 0; d < place.devices(); ++d) {
    for (int f = 0; f < place.chunks(d); ++f) {
      const int vs = place.virtual_stage(d, f);
      const StageCost& forward = problem.stage(vs);
      for (int b = 0; b < place.chunks(d); ++b) {
        const int other = place.virtual_stage(d, b);
        const StageCost& backward = problem.stage(other);
        const Seconds apart = forward.forward + backward.backward_input + backward.backward_weight;
        if (apart > Seconds(0))
          least = std::min(least, block_seconds(problem, vs, other).value_or(apart) / apart);
      }
    }
  }
  if (!problem.blocks.empty()) return least;
  // Where units differ, the block takes of each pass the share of that unit's own block.
  for (const UnitKind& kind : problem.kinds) {
    for (const StageCost& stage : kind.stages) {
      const Seconds apart = stage.forward + stage.backward_input + stage.backward_weight;
      if (apart > Seconds(0)) least = std::min(least, stage.overlapped.value_or(apart) / apart);
    }
  }
  return least;
}

Problem without_overlap(Problem problem) {
  const double least = least_overlap(problem);
  for_all_stages(problem, [least](StageCost& cost) {
    cost.forward = least * cost.forward;
    cost.backward_input = least * cost.backward_input;
    cost.backward_weight = least * cost.backward_weight;
  });
  return problem;
}

}  // namespace pipesim
