#include "sim/search/bound_like.h"

#include <algorithm>
#include <vector>

#include "sim/execution/spelling.h"
#include "sim/pipeline/unequal_units.h"
#include "sim/planning/least_overlap.h"
#include "sim/planning/pairs.h"
#include "sim/planning/room.h"

namespace pipesim {
namespace {

bool is_plain(const Program& like, const Problem& problem) {
  return travels_one_way(like) && !like.recomputes() && !overtakes_unequally(like, problem);
}

// Seconds of a unit when nothing waits, by virtual stage: of every unit, and of the first, which
// waits for all messages.
struct Ways {
  std::vector<double> start;       // of F
  std::vector<double> back;        // from the end of F to the start of B
  std::vector<double> first_back;  // likewise, of the first unit

  Ways(const Program& like, const Problem& problem)
      : start(problem.stages.size()), back(start), first_back(start) {
    const Placement& place = like.placement();
    for (int vs = 0; vs < place.virtual_stages(); ++vs) {
      const int up = place.upstream(vs);
      if (up < 0 || may_go_ahead(like, up)) continue;
      const StageCost& before = problem.stage(up);
      start[vs] = start[up] + (before.forward + before.transfer).value();
    }
    for (int vs = place.virtual_stages() - 1; vs >= 0; --vs) {
      const int down = place.downstream(vs);
      if (down < 0) continue;
      const double there = 2 * problem.stage(vs).transfer.value() +
                           problem.stage(down).forward.value() +
                           problem.stage(down).backward_input.value();
      const auto beyond = [&](const std::vector<double>& ways) {
        return there + std::max(ways[down], recompute_seconds(like, problem, down));
      };
      first_back[vs] = beyond(first_back);
      if (!may_go_ahead(like, vs)) back[vs] = beyond(back);
    }
  }

  // Seconds of R.
  static double recompute_seconds(const Program& like, const Problem& problem, int vs) {
    const StageCost& cost = problem.stage(vs);
    return like.recomputes(vs) ? cost.recompute.value_or(cost.forward).value() : 0;
  }
};

Seconds work_of(const StageCost& cost, bool recomputes) {
  const Seconds recompute = recomputes ? cost.recompute.value_or(cost.forward) : Seconds(0);
  return cost.forward + recompute + cost.backward_input + cost.backward_weight;
}

// The work of the units that travel through a stage.
Seconds work_of(const Program& like, const Problem& problem, int vs) {
  const int all = problem.shape.units();
  const int from = like.placement().first_unit(vs, all);
  const int to = like.placement().end_unit(vs, all);
  if (problem.kinds.empty()) return (to - from) * work_of(problem.stage(vs), like.recomputes(vs));
  Seconds work;
  for (int unit = from; unit < to; ++unit) {
    work += work_of(problem.stage(vs, static_cast<std::uint32_t>(unit)), like.recomputes(vs));
  }
  return work;
}

// Bytes times seconds of a unit on a stage.
double held_by(const Program& like, const Problem& problem, int vs, double way) {
  const StageCost& cost = problem.stage(vs);
  const double recompute = Ways::recompute_seconds(like, problem, vs);
  const double activation = cost.activation.value();
  const double kept =
      like.recomputes(vs) ? std::min(activation, cost.checkpoint.value()) : activation;
  return kept * (cost.forward.value() + std::max(0.0, way - recompute)) +
         activation * (recompute + cost.backward_input.value()) +
         std::min(activation, cost.weight_stash.value()) * cost.backward_weight.value();
}

void take(ReasonedBound& best, Seconds seconds, const BoundReason& reason) {
  if (seconds > best.seconds) best = {seconds, reason};
}

// Each device alone.
void add_devices(const Program& like, const Problem& problem, Bytes limit, ReasonedBound& best) {
  const Placement& place = like.placement();
  const Problem cheapest = of_cheapest_units(problem);
  const Ways ways(like, cheapest);
  for (int d = 0; d < place.devices(); ++d) {
    Seconds work;
    double held = 0;
    double start = ways.start[place.virtual_stage(d, 0)];
    for (int c = 0; c < place.chunks(d); ++c) {
      const int vs = place.virtual_stage(d, c);
      const int all = problem.shape.units();
      const int units = place.end_unit(vs, all) - place.first_unit(vs, all);
      work += work_of(like, problem, vs);
      held += units * held_by(like, cheapest, vs, ways.back[vs]);
      start = std::min(start, ways.start[vs]);
    }
    const Seconds before(problem.objective == Objective::kMakespan ? start : 0);
    const bool waits = before > Seconds(0);
    take(best, before + work, {waits ? BoundHolder::kStart : BoundHolder::kWork, d, before});
    const Seconds within(held / (limit.value() * kRounding));
    take(best, before + within, {BoundHolder::kMemory, d, before + within - work});
  }
}

// One unit alone, on the first stage of its way.
void add_ways(const Program& like, const Problem& problem, ReasonedBound& best) {
  const Placement& place = like.placement();
  const Problem cheapest = of_cheapest_units(problem);
  const Ways ways(like, cheapest);
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    if (place.upstream(vs) >= 0) continue;
    const StageCost& cost = cheapest.stage(vs);
    const Seconds way(std::max(ways.first_back[vs], Ways::recompute_seconds(like, cheapest, vs)));
    const Seconds all = cost.forward + way + cost.backward_input + cost.backward_weight;
    Seconds work;
    for (int c = 0; c < place.chunks(place.device(vs)); ++c) {
      work += work_of(like, problem, place.virtual_stage(place.device(vs), c));
    }
    take(best, all, {BoundHolder::kRoundTrip, place.device(vs), all - work});
  }
}

// F, B and W in one direction, in any order.
void add_one_way(const Program& like, const Problem& problem, Bytes limit, bool blocks,
                 ReasonedBound& best) {
  const Bytes within = like.recomputes() ? no_limit(problem) : limit;
  if (problem.kinds.empty()) {
    const Bound bound =
        blocks ? bound_with_pairs(problem, within) : bound_in_parts(problem, within);
    take(best, bound.seconds(),
         blocks ? reason_of_bound_with_pairs(problem, within) : reason_of_bound(problem, within));
    return;
  }
  const Problem cheapest = of_cheapest_units(blocks ? without_overlap(problem) : problem);
  take(best, lower_bound(cheapest, within), reason_of_bound(cheapest, within));
}

}  // namespace

ReasonedBound reasoned_bound_like(const Program& like, const Problem& problem, Bytes limit,
                                  bool blocks) {
  if (is_plain(like, problem)) {
    if (!blocks) return {lower_bound(problem, limit), reason_of_bound(problem, limit)};
    return {bound_with_pairs(problem, limit).seconds(), reason_of_bound_with_pairs(problem, limit)};
  }
  const bool shortens = blocks && gains_by_pairs(problem);
  const Problem shortest = shortens ? without_overlap(problem) : problem;
  ReasonedBound best;
  add_devices(like, shortest, limit, best);
  add_ways(like, shortest, best);
  if (travels_one_way(like)) add_one_way(like, problem, limit, shortens, best);
  return best;
}

Seconds bound_like(const Program& like, const Problem& problem, Bytes limit, bool blocks) {
  if (!is_plain(like, problem)) return reasoned_bound_like(like, problem, limit, blocks).seconds;
  return blocks ? bound_with_pairs(problem, limit).seconds() : lower_bound(problem, limit);
}

}  // namespace pipesim
