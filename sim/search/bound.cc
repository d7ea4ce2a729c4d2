#include "sim/search/bound.h"

#include <algorithm>
#include <fmt/format.h>

#include "sim/core/text.h"
#include "sim/pipeline/unequal_units.h"
#include "sim/planning/least_overlap.h"
#include "sim/planning/pairs.h"
#include "sim/planning/room.h"

namespace pipesim {

Seconds lower_bound(const Problem& problem, Bytes limit) {
  return bound_in_parts(problem, limit).seconds();
}

bool overtakes_unequally(const Program& program, const Problem& problem) {
  return problem.kinds.size() > 1 && program.units_overtake();
}

// Windows take units that differ in their order, in which backwards of slices do not run: those
// all count as the cheapest.
Bound bound_in_parts(const Problem& problem, Bytes limit) {
  const bool reordered = problem.shape.splits > 1 && !problem.kinds.empty();
  return {parts_of_device_bound(problem, limit, problem.objective),
          bound_of_windows(reordered ? of_cheapest_units(problem) : problem, limit)};
}

namespace {

constexpr double kNothing = 1e-9;  // share of a bound

Seconds work_of(const Problem& problem, int device) {
  Seconds work;
  for (int c = 0; c < problem.placement.chunks(device); ++c) {
    const StageCost& cost = problem.stages[problem.placement.virtual_stage(device, c)];
    work += cost.forward + cost.backward_input + cost.backward_weight;
  }
  return problem.shape.units() * work;
}

}  // namespace

Bytes no_limit(const Problem& problem) {
  return (problem.shape.units() + 1.0) * std::max(Bytes(1), problem.device_activation());
}

Seconds bound_without_limit(const Problem& problem) {
  return lower_bound(problem, no_limit(problem));
}

// Windows take passes as short as their share of the block that hides most.
Bound bound_with_pairs(const Problem& problem, Bytes limit) {
  if (!gains_by_pairs(problem)) return bound_in_parts(problem, limit);
  Bound bound = bound_in_parts(without_overlap(problem), limit);
  if (!problem.kinds.empty()) return bound;
  const auto paired = parts_of_paired_bound(problem, limit, problem.objective);
  if (paired.seconds > bound.alone.seconds) bound.alone = paired;
  return bound;
}

Seconds bound_with_pairs_without_limit(const Problem& problem) {
  return bound_with_pairs(problem, no_limit(problem)).seconds();
}

BoundReason reason_of_bound_with_pairs(const Problem& problem, Bytes limit) {
  return reason_of_bound(without_overlap(problem), bound_with_pairs(problem, limit),
                         bound_with_pairs_without_limit(problem));
}

BoundReason reason_of_bound(const Problem& problem, Bytes limit) {
  return reason_of_bound(problem, bound_in_parts(problem, limit), bound_without_limit(problem));
}

BoundReason reason_of_bound(const Problem& problem, const Bound& bound, Seconds without_limit) {
  const auto& [alone, windows] = bound;
  const bool by_windows = windows.seconds > alone.seconds;
  const Seconds seconds = bound.seconds();
  BoundReason reason;
  reason.device = by_windows ? windows.device : alone.device;
  reason.idle = seconds - (by_windows ? work_of(problem, reason.device) : alone.work);
  const Seconds after = by_windows ? windows.after : alone.drain;
  if (reason.idle <= kNothing * seconds) {
    reason.holder = BoundHolder::kWork;
  } else if (without_limit < (1 - kNothing) * seconds) {
    reason.holder = BoundHolder::kMemory;
  } else if (by_windows && windows.through) {
    reason.holder = BoundHolder::kRoundTrip;
  } else {
    reason.holder = 2 * after > reason.idle ? BoundHolder::kDrain : BoundHolder::kStart;
  }
  return reason;
}

std::string to_text(const BoundReason& reason) {
  const std::string idle = human(reason.idle);
  switch (reason.holder) {
    case BoundHolder::kWork:
      return fmt::format("the work of device {}", reason.device);
    case BoundHolder::kStart:
      return fmt::format("the start: device {} waits {} beside its work", reason.device, idle);
    case BoundHolder::kDrain:
      return fmt::format("the drain: device {} waits {} beside its work", reason.device, idle);
    case BoundHolder::kMemory:
      return fmt::format("memory: device {} waits {} beside its work", reason.device, idle);
    case BoundHolder::kRoundTrip:
      return fmt::format("the round trip of microbatches from device {} to one behind it",
                         reason.device);
  }
  return "";
}

Seconds lower_bound(const Problem& problem, Bytes limit, const Relief& relief) {
  const Placement& place = problem.placement;
  const Problem cheapest = of_cheapest_units(problem);
  const StageWays ways(cheapest);
  const double units = problem.shape.units();
  Bytes whole;  // every microbatch at once: no limit
  double bound = 0;
  for (int d = 0; d < place.devices(); ++d) {
    Bytes on_device;
    double work = 0;
    double held = 0;  // bytes x seconds
    for (int c = 0; c < place.chunks(d); ++c) {
      const int s = place.virtual_stage(d, c);
      const StageCost& cost = cheapest.stages[s];
      const StageCost& mean = problem.stages[s];
      const bool recomputes = c < relief.recompute_chunks;
      const double again = recomputes ? cost.recompute.value_or(cost.forward).value() : 0;
      const double mean_again = recomputes ? mean.recompute.value_or(mean.forward).value() : 0;
      const double kept = (recomputes ? cost.checkpoint : cost.activation).value();
      // Given or of all that a stage keeps, copies are not longer of less.
      const double part = recomputes && cost.activation > Bytes(0)
                              ? std::min(1.0, cost.checkpoint / cost.activation)
                              : 1;
      const Seconds copies = part * problem.copy_alone_factor * (cost.copy_out + cost.copy_in);
      double waits = std::max(0.0, ways.back[s] - again);
      if (relief.copies) waits = std::min(waits, copies.value());
      on_device += mean.activation;
      work += mean.forward.value() + mean_again + mean.backward_input.value() +
              mean.backward_weight.value();
      held += kept * (cost.forward.value() + waits) +
              cost.activation.value() * (again + cost.backward_input.value()) +
              std::min(cost.activation, cost.weight_stash).value() * cost.backward_weight.value();
    }
    whole = std::max(whole, units * on_device);
    const int first = place.virtual_stage(d, 0);
    const double before = problem.objective == Objective::kMakespan ? ways.start[first] : 0;
    bound = std::max(bound, before + units * std::max(work, held / (limit.value() * kRounding)));
  }
  return std::max(Seconds(bound), lower_bound(problem, std::max(limit, whole)));
}

}  // namespace pipesim
