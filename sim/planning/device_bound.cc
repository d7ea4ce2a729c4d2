#include "sim/planning/device_bound.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "sim/execution/evaluate.h"
#include "sim/pipeline/unequal_units.h"
#include "sim/planning/room.h"

namespace pipesim {
namespace {

// One device's view: its chunks in stage order, and the time from the end of each one's F to the
// start of its B when nothing waits.
struct ChunkTimes {
  double forward, backward, weight;
  double activation, stash;
  double way;
  double saved;  // by a block of its F and any backward of the device, at most
};

class DeviceBound {
 public:
  DeviceBound(std::vector<ChunkTimes> chunks, int microbatches, double limit, double to_first_b)
      : chunks_(std::move(chunks)), m_(microbatches), limit_(limit), to_first_b_(to_first_b) {}

  [[nodiscard]] DeviceBoundParts parts() const {
    double work = 0;
    double held = 0;  // bytes x seconds of a microbatch
    for (const ChunkTimes& chunk : chunks_) {
      work += m_ * (chunk.forward + chunk.backward + chunk.weight - chunk.saved);
      held += chunk.activation * (chunk.forward + chunk.way + chunk.backward) +
              chunk.stash * chunk.weight;
    }
    // Before the first B F run alone, or the device is idle; the former save nothing.
    const double alone = std::min(forwards_before_b(), to_first_b_);
    const double share = saved_share();
    const double start = to_first_b_ - alone + share * alone;
    double idle = start;
    DeviceBoundParts parts;
    parts.work = Seconds(work);
    for (size_t c = 0; c < chunks_.size(); ++c) {
      const bool disjoint = m_ * chunks_[c].activation > limit_;
      const double drain = drain_idle(c);
      const double before = disjoint ? start : share * std::max(0.0, to_first_b_ - drain);
      const double both = before + drain;
      if (both <= idle) continue;
      idle = both;
      parts.drain = Seconds(drain);
    }
    parts.seconds = Seconds(std::max(work + idle, m_ * held / limit_));
    return parts;
  }

 private:
  // The least share of its seconds that an F saves in a block.
  [[nodiscard]] double saved_share() const {
    double share = 1;
    for (const ChunkTimes& chunk : chunks_) {
      if (chunk.forward > 0) share = std::min(share, chunk.saved / chunk.forward);
    }
    return share;
  }

  // Seconds before the first B: of the F that the limit holds, most seconds per byte first.
  [[nodiscard]] double forwards_before_b() const {
    std::vector<ChunkTimes> best = chunks_;
    std::ranges::stable_sort(best, std::greater<>(), [](const ChunkTimes& chunk) {
      if (chunk.forward <= 0) return 0.0;
      return chunk.activation > 0 ? chunk.forward / chunk.activation
                                  : std::numeric_limits<double>::infinity();
    });
    double room = limit_;
    double forwards = 0;
    for (const ChunkTimes& chunk : best) {
      double count = m_;
      if (chunk.activation > 0) count = std::min(count, room / chunk.activation);
      if (chunks_.size() == 1) count = std::floor(count);
      forwards += count * chunk.forward;
      room -= count * chunk.activation;
    }
    return forwards;
  }

  // Between the last F of chunk c and its B: the rest of this microbatch, and of those in flight
  // what the remaining bytes hold, those with the most work left per byte first.
  [[nodiscard]] double drain_idle(size_t c) const {
    double own = 0;
    for (size_t later = c + 1; later < chunks_.size(); ++later) {
      own += chunks_[later].forward + chunks_[later].backward + chunks_[later].weight;
    }
    double most_each = 0;
    double per_byte = 0;
    double held = 0;
    double left = 0;
    bool unbounded = false;
    const auto consider = [&](double work, double bytes) {
      most_each = std::max(most_each, work);
      if (bytes > 0) {
        per_byte = std::max(per_byte, work / bytes);
      } else {
        unbounded = unbounded || work > 0;
      }
    };
    for (const ChunkTimes& chunk : chunks_) left += chunk.forward + chunk.backward + chunk.weight;
    for (size_t done = 0; done < chunks_.size(); ++done) {  // F of chunks 0..done have run
      held += chunks_[done].activation;
      left -= chunks_[done].forward;
      if (done >= c) consider(left, held);
    }
    double behind_work = 0;
    double behind_bytes = 0;
    for (const ChunkTimes& chunk : chunks_) {  // all F have run, B of the chunks behind too
      behind_work += chunk.backward + chunk.weight;
      behind_bytes += chunk.activation;
      consider(behind_work, behind_bytes);
      consider(chunk.weight, chunk.stash);
    }
    double others = (m_ - 1) * most_each;
    if (!unbounded) others = std::min(others, (limit_ - chunks_[c].activation) * per_byte);
    if (chunks_.size() == 1 && !unbounded && chunks_[0].stash == chunks_[0].activation) {
      const double whole = std::floor(limit_ / chunks_[0].activation);
      others = std::min(others, (whole - 1) * most_each);
    }
    return std::max(0.0, chunks_[c].way - own - others);
  }

  std::vector<ChunkTimes> chunks_;
  double m_;
  double limit_;
  double to_first_b_;  // from the start of the first F
};

// For units of unequal cost, the larger of two bounds. One takes every unit at the cheapest one's
// cost. The other is each device's work, after its first F may start in that cheapest problem.
DeviceBoundParts parts_of_unequal(const Problem& problem, Bytes limit, Objective objective) {
  const Problem cheapest = of_cheapest_units(problem);
  DeviceBoundParts bound = parts_of_device_bound(cheapest, limit, objective);
  const std::vector<double> start = StageWays(cheapest).start;
  const Placement& place = problem.placement;
  std::vector<Seconds> works;
  for (int d = 0; d < place.devices(); ++d) {
    Seconds work;
    for (int c = 0; c < place.chunks(d); ++c) {
      const StageCost& cost = problem.stage(place.virtual_stage(d, c));
      work += cost.forward + cost.backward_input + cost.backward_weight;
    }
    works.push_back(problem.shape.units() * work);
    Seconds all = works.back();
    if (objective == Objective::kMakespan) all += Seconds(start[place.virtual_stage(d, 0)]);
    if (all > bound.seconds) bound = {all, d, {}, {}};
  }
  bound.work = works[static_cast<size_t>(bound.device)];
  return bound;
}

}  // namespace

StageWays::StageWays(const Problem& problem) {
  const int stages = problem.placement.model_stages();
  back.resize(stages);
  start.resize(back.size());
  for (int s = stages - 2; s >= 0; --s) {
    const StageCost& next = problem.stage(s + 1);
    back[s] = 2 * problem.stage(s).transfer.value() + next.forward.value() +
              next.backward_input.value() + back[s + 1];
  }
  for (int s = 1; s < stages; ++s) {
    const StageCost& before = problem.stage(s - 1);
    start[s] = start[s - 1] + before.forward.value() + before.transfer.value();
  }
}

Seconds bound_of_devices(const Problem& problem, Bytes limit) {
  return bound_of_devices(problem, limit, problem.objective);
}

Seconds bound_of_devices(const Problem& problem, Bytes limit, Objective objective) {
  return parts_of_device_bound(problem, limit, objective).seconds;
}

namespace {

Seconds backward_of(const StageCost& stage) { return stage.backward_input + stage.backward_weight; }

// A block may take less than one of its passes alone: F takes no longer than the shortest block
// with it, and B and W together no longer than the shortest with both.
Problem of_least_passes(const Problem& problem) {
  const Placement& place = problem.placement;
  Problem least = problem;
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    for (int c = 0; c < place.chunks(place.device(vs)); ++c) {
      const int other = place.virtual_stage(place.device(vs), c);
      const auto block = block_seconds(problem, vs, other);
      if (!block) continue;
      StageCost& back = least.stages[other];
      least.stages[vs].forward = std::min(least.stages[vs].forward, *block);
      back.backward_input = std::min(back.backward_input, *block);
      back.backward_weight = std::min(back.backward_weight, *block - back.backward_input);
    }
  }
  return least;
}

// An upper bound of the seconds that an F of the stage saves in a block of `problem`, by which its
// passes in `least` take longer. Beside a backward longer than its shortest block, B or W alone may
// hide all of F.
double most_saved(const Problem& problem, const Problem& least, int vs) {
  const Placement& place = problem.placement;
  const Seconds forward = least.stages[vs].forward;
  Seconds most;
  for (int c = 0; c < place.chunks(place.device(vs)); ++c) {
    const int other = place.virtual_stage(place.device(vs), c);
    const Seconds backward = backward_of(least.stages[other]);
    const auto block = block_seconds(problem, vs, other);
    if (!block) continue;
    most = std::max(most, forward + backward - *block);
    if (backward < backward_of(problem.stages[other])) most = std::max(most, forward);
  }
  return most.value();
}

// `saved`: by an F of each virtual stage, at most; empty: nothing.
DeviceBoundParts parts_of_alike(const Problem& problem, Bytes limit, Objective objective,
                                const std::vector<double>& saved) {
  const Placement& place = problem.placement;
  const auto [way, forward_start] = StageWays(problem);
  DeviceBoundParts bound;
  for (int d = 0; d < place.devices(); ++d) {
    std::vector<ChunkTimes> chunks;
    for (int c = 0; c < place.chunks(d); ++c) {
      const int s = place.virtual_stage(d, c);
      const StageCost& cost = problem.stages[s];
      chunks.push_back({cost.forward.value(), cost.backward_input.value(),
                        cost.backward_weight.value(), cost.activation.value(),
                        std::min(cost.activation, cost.weight_stash).value(), way[s],
                        saved.empty() ? 0 : saved[static_cast<size_t>(s)]});
    }
    const int first = place.virtual_stage(d, 0);
    const int last = place.virtual_stage(d, place.chunks(d) - 1);
    const double to_first_b =
        forward_start[last] - forward_start[first] + chunks.back().forward + way[last];
    const double before = objective == Objective::kMakespan ? forward_start[first] : 0;
    const DeviceBound device(std::move(chunks), problem.shape.units(), limit.value() * kRounding,
                             to_first_b);
    DeviceBoundParts one = device.parts();
    one.device = d;
    one.seconds += Seconds(before);
    if (one.seconds > bound.seconds) bound = one;
  }
  return bound;
}

}  // namespace

DeviceBoundParts parts_of_device_bound(const Problem& problem, Bytes limit, Objective objective) {
  if (!problem.kinds.empty()) return parts_of_unequal(problem, limit, objective);
  return parts_of_alike(problem, limit, objective, {});
}

DeviceBoundParts parts_of_paired_bound(const Problem& problem, Bytes limit, Objective objective) {
  const Problem least = of_least_passes(problem);
  std::vector<double> saved;
  for (int vs = 0; vs < problem.placement.virtual_stages(); ++vs) {
    saved.push_back(most_saved(problem, least, vs));
  }
  return parts_of_alike(least, limit, objective, saved);
}

PlanTime least_plan_time(const Problem& problem, Bytes limit) {
  const double span = bound_of_devices(problem, limit, Objective::kCost).value();
  if (problem.objective == Objective::kCost) return {span};
  return {bound_of_devices(problem, limit, Objective::kMakespan).value(), span};
}

PlanTime bound_of_claimed_peak(const Schedule& schedule, const Problem& problem) {
  const PeakClaim& claim = schedule.claims.peak;
  if (!claim.holds(problem)) return {0};
  int chunks = 0;
  for (int d = 0; d < problem.placement.devices(); ++d) {
    chunks = std::max(chunks, claim.in_flight(problem, d));
  }
  const auto largest = std::ranges::max_element(problem.stages, {}, &StageCost::activation);
  return least_plan_time(problem, chunks * largest->activation);
}

}  // namespace pipesim
