#include "sim/search/bound.h"

#include <algorithm>

#include "sim/planning/device_bound.h"

namespace pipesim {

Seconds lower_bound(const Problem& problem, Bytes limit, Objective objective) {
  return std::max(bound_of_devices(problem, limit, objective == Objective::kMakespan),
                  bound_of_windows(problem, limit, objective));
}

Seconds lower_bound(const Problem& problem, Bytes limit, const Relief& relief,
                    Objective objective) {
  const Placement& place = problem.placement;
  const StageWays ways(problem);
  const double units = problem.shape.units();
  Bytes whole;  // every microbatch at once: no limit
  double bound = 0;
  for (int d = 0; d < place.devices(); ++d) {
    Bytes on_device;
    double work = 0;
    double held = 0;  // bytes x seconds
    for (int c = 0; c < place.chunks(); ++c) {
      const int s = place.virtual_stage(d, c);
      const StageCost& cost = problem.stages[s];
      const bool recomputes = c < relief.recompute_chunks;
      const double again = recomputes ? cost.recompute.value_or(cost.forward).value() : 0;
      const double kept = (recomputes ? cost.checkpoint : cost.activation).value();
      // Given or of all that a stage keeps, copies are not longer of less.
      const double part = recomputes && cost.activation > Bytes(0)
                              ? std::min(1.0, cost.checkpoint / cost.activation)
                              : 1;
      const Seconds copies = part * problem.copy_alone_factor * (cost.copy_out + cost.copy_in);
      double waits = std::max(0.0, ways.back[s] - again);
      if (relief.copies) waits = std::min(waits, copies.value());
      on_device += cost.activation;
      work +=
          cost.forward.value() + again + cost.backward_input.value() + cost.backward_weight.value();
      held += kept * (cost.forward.value() + waits) +
              cost.activation.value() * (again + cost.backward_input.value()) +
              cost.weight_stash.value() * cost.backward_weight.value();
    }
    whole = std::max(whole, units * on_device);
    const int first = place.virtual_stage(d, 0);
    const double before = objective == Objective::kMakespan ? ways.start[first] : 0;
    bound = std::max(bound, before + units * std::max(work, held / (limit.value() * kRounding)));
  }
  return std::max(Seconds(bound), lower_bound(problem, std::max(limit, whole), objective));
}

}  // namespace pipesim
