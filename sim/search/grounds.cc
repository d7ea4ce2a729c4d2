#include "sim/search/grounds.h"

#include <algorithm>
#include <utility>

#include "sim/planning/device_bound.h"
#include "sim/planning/least_overlap.h"
#include "sim/search/excluded.h"

namespace pipesim {

bool Ground::holds(const std::optional<Layout>& layers, const Problem& other) const {
  const auto alike = [](const StageCost& a, const StageCost& b) {
    return a.forward == b.forward && a.backward_input == b.backward_input &&
           a.backward_weight == b.backward_weight && a.transfer == b.transfer &&
           a.activation == b.activation && a.weight_stash == b.weight_stash;
  };
  return layout == layers && problem.shape == other.shape && problem.placement == other.placement &&
         problem.kind_of_unit == other.kind_of_unit &&
         std::ranges::equal(problem.stages, other.stages, alike);
}

Problem Ground::of_single_passes() const { return overlaps ? without_overlap(problem) : problem; }

void Grounds::add(const std::optional<Layout>& layers, const Problem& problem, bool overlaps) {
  const bool seen = std::ranges::any_of(all_, [&](const Ground& ground) {
    return ground.holds(layers, problem) && ground.overlaps == overlaps;
  });
  if (seen) return;
  all_.push_back(
      {layers, overlaps, problem,
       overlaps ? bound_with_pairs_without_limit(problem) : bound_without_limit(problem)});
}

Seconds BoundsWithin::of(const std::optional<Layout>& layers, const Problem& problem) {
  for (size_t i = 0; i < grounds_.size(); ++i) {
    if (!grounds_[i].overlaps && grounds_[i].holds(layers, problem)) return bound(i).seconds();
  }
  return lower_bound(problem, limit_);
}

const Bound& BoundsWithin::bound(size_t ground) {
  auto& known = known_[ground];
  const Ground& of = grounds_[ground];
  if (!known) {
    known = of.overlaps ? bound_with_pairs(of.problem, limit_) : bound_in_parts(of.problem, limit_);
  }
  return *known;
}

LeastBound BoundsWithin::least_of(const Ground& ground, const Bound& bound,
                                  std::optional<Seconds> best) const {
  const Problem problem = ground.of_single_passes();
  const Seconds plain = bound.seconds();
  Seconds least = plain;
  if (best && !relief_.offload && !relief_.recompute) {
    least = excluded_below(problem, limit_, plain, *best);
  }
  for (int chunks = 0; chunks <= (relief_.recompute ? problem.shape.chunks : 0); ++chunks) {
    if (chunks == 0 && !relief_.offload) continue;
    least = std::min(least, lower_bound(problem, limit_, {chunks, relief_.offload}));
  }
  if (least < plain) return {least, std::nullopt};
  return {least, reason_of_bound(problem, bound, ground.without_limit)};
}

// Grounds on which a device alone takes longer than the least need no windows.
LeastBound BoundsWithin::least(std::optional<Seconds> best) {
  std::vector<std::pair<Seconds, size_t>> alone;
  for (size_t i = 0; i < grounds_.size(); ++i) {
    alone.emplace_back(bound_of_devices(grounds_[i].of_single_passes(), limit_), i);
  }
  std::ranges::sort(alone);
  std::optional<LeastBound> least;
  size_t of = 0;
  for (const auto& [seconds, i] : alone) {
    const bool relief = relief_.offload || relief_.recompute;  // which is not longer
    if (!relief && least && seconds > least->seconds) break;
    const LeastBound one = least_of(grounds_[i], bound(i), best);
    const bool earlier = least && one.seconds == least->seconds && i < of;
    if (least && one.seconds >= least->seconds && !earlier) continue;
    least = one;
    of = i;
  }
  return least.value_or(LeastBound{});
}

}  // namespace pipesim
