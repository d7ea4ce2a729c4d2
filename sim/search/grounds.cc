#include "sim/search/grounds.h"

#include <algorithm>
#include <utility>

#include "sim/planning/device_bound.h"
#include "sim/planning/least_overlap.h"
#include "sim/search/excluded.h"

namespace pipesim {

bool same_costs(const Problem& a, const Problem& b) {
  const auto alike = [](const StageCost& one, const StageCost& other) {
    return one.forward == other.forward && one.backward_input == other.backward_input &&
           one.backward_weight == other.backward_weight && one.transfer == other.transfer &&
           one.activation == other.activation && one.weight_stash == other.weight_stash &&
           one.recompute == other.recompute && one.checkpoint == other.checkpoint;
  };
  return a.shape == b.shape && a.placement == b.placement &&
         std::ranges::equal(a.stages, b.stages, alike);
}

bool Ground::holds(const std::optional<Layout>& layers, const Problem& other) const {
  return layout == layers && problem.kind_of_unit == other.kind_of_unit &&
         same_costs(problem, other);
}

bool Ground::is_plain() const {
  return std::ranges::all_of(reliefs, [](const auto& relief) { return relief == Relief{}; });
}

Problem Ground::of_single_passes() const { return overlaps ? without_overlap(problem) : problem; }

void Grounds::add(const std::optional<Layout>& layers, const Problem& problem, bool overlaps,
                  const std::optional<Relief>& relief) {
  auto ground = std::ranges::find_if(all_, [&](const Ground& other) {
    return other.holds(layers, problem) && other.overlaps == overlaps;
  });
  if (ground == all_.end()) {
    const Seconds plenty =
        overlaps ? bound_with_pairs_without_limit(problem) : bound_without_limit(problem);
    ground = all_.insert(all_.end(), {layers, overlaps, problem, {}, plenty});
  }
  auto& reliefs = ground->reliefs;
  if (std::ranges::find(reliefs, relief) == reliefs.end()) reliefs.push_back(relief);
}

Seconds BoundsWithin::of(const std::optional<Layout>& layers, const Problem& problem) {
  for (size_t i = 0; i < grounds_.size(); ++i) {
    if (!grounds_[i].overlaps && grounds_[i].holds(layers, problem)) return bound(i).seconds();
  }
  return lower_bound(problem, limit_);
}

const Bound& BoundsWithin::bound(size_t ground) {
  auto& known = known_[ground];
  const Problem& problem = grounds_[ground].problem;
  if (!known) {
    known = grounds_[ground].overlaps ? bound_with_pairs(problem, limit_)
                                      : bound_in_parts(problem, limit_);
  }
  return *known;
}

LeastBound BoundsWithin::least_of(const Ground& ground, const Bound& bound,
                                  std::optional<Seconds> best) const {
  const Problem problem = ground.of_single_passes();
  const Seconds plain = bound.seconds();
  std::optional<Seconds> least;
  for (const auto& relief : ground.reliefs) {
    const bool none = relief == Relief{};
    const Seconds seconds = none     ? plain
                            : relief ? lower_bound(problem, limit_, *relief)
                                     : ground.without_limit;
    least = std::min(least.value_or(seconds), seconds);
  }
  if (ground.is_plain() && best) least = excluded_below(problem, limit_, plain, *best);
  if (*least < plain) return {*least, std::nullopt};
  return {*least, reason_of_bound(problem, bound, ground.without_limit)};
}

// Grounds on which a device alone takes longer than the least need no windows.
LeastBound BoundsWithin::least(std::optional<Seconds> best) {
  std::vector<std::pair<Seconds, size_t>> alone;
  for (size_t i = 0; i < grounds_.size(); ++i) {
    alone.emplace_back(bound_of_devices(grounds_[i].of_single_passes(), limit_), i);
  }
  std::ranges::sort(alone);
  const bool all_plain = std::ranges::all_of(grounds_, &Ground::is_plain);
  std::optional<LeastBound> least;
  size_t least_ground = 0;
  for (const auto& [seconds, i] : alone) {
    if (all_plain && least && seconds > least->seconds) break;  // relief may shorten what follows
    const LeastBound one = least_of(grounds_[i], bound(i), best);
    const bool earlier = least && one.seconds == least->seconds && i < least_ground;
    if (least && one.seconds >= least->seconds && !earlier) continue;
    least = one;
    least_ground = i;
  }
  return least.value_or(LeastBound{});
}

}  // namespace pipesim
