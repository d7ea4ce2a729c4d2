#include "sim/layouts/shortlist.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <tuple>

#include "sim/layouts/bound.h"
#include "sim/layouts/words.h"

namespace pipesim {
namespace {

constexpr double kNothingYet = std::numeric_limits<double>::infinity();

double seconds_of(const std::optional<Planned>& entry) {
  return entry ? entry->iteration.value() : kNothingYet;
}

// Layouts that fit stand before those that fit tightly, then by time, then by place in the space.
bool is_before(const Planned& a, const Planned& b) {
  if (a.fits != b.fits) return a.fits > b.fits;
  return std::tie(a.iteration, a.id) < std::tie(b.iteration, b.id);
}

void keep_better(std::optional<Planned>& entry, const Planned& planned) {
  if (!entry || is_before(planned, *entry)) entry = planned;
}

// A tight layout is worth its time only where none that fits is known.
bool may_be_faster(const std::optional<Planned>& entry, double seconds, bool tight) {
  if (!entry) return true;
  const bool known_tight = entry->fits == MemoryFit::kTight;
  if (known_tight != tight) return known_tight;
  return seconds * kBelow < entry->iteration.value();
}

}  // namespace

int mechanisms_of(const PlanPoint& point) {
  const std::string& schedule = point.schedule->name;
  const bool divides_more = point.sharding && *point.sharding != ShardingStrategy::kOptim &&
                            *point.sharding != ShardingStrategy::kNoShard;
  int count = 0;
  for (const bool each :
       {point.tensor > 1, point.context > 1, point.expert > 1, point.pipeline > 1,
        point.pipeline > 1 && point.chunks > 1, point.split == PlanSplit::kBalanced,
        point.recompute != RecomputeGranularity::kNone, point.offload || point.modules.any(),
        point.vocabulary != VocabularyPlacement::kFirstLast, divides_more, point.expert_overlap,
        point.pipeline > 1 && schedule != "1f1b" && schedule != "interleaved-1f1b"}) {
    count += each ? 1 : 0;
  }
  return count;
}

double Shortlist::fastest() const {
  return fastest_ && fastest_->fits == MemoryFit::kYes ? fastest_->iteration.value() : kNothingYet;
}

bool Shortlist::may_be_simplest(const PlanPoint& point, double seconds) const {
  if (seconds * kBelow > kNearlyAsFast * fastest()) return false;
  for (int fewer = 0; fewer <= mechanisms_of(point); ++fewer) {
    if (seconds * kBelow >= seconds_of(simple_.at(static_cast<size_t>(fewer)))) return false;
  }
  return true;
}

bool Shortlist::may_enter(const PlanPoint& point, bool runs, double seconds, bool tight,
                          Bytes memory) const {
  if (may_be_faster(any_, seconds, tight)) return true;
  if (!runs) return false;
  if (may_be_faster(fastest_, seconds, tight)) return true;
  if (tight || seconds * kBelow > kMostSlower * fastest()) return false;
  if (point.pipeline == 1 && may_be_faster(no_pipeline_, seconds, tight)) return true;
  const bool roomy = kBelow * memory <= kRoomyShare * limit_;
  return (roomy && may_be_faster(roomy_, seconds, tight)) || may_be_simplest(point, seconds);
}

double Shortlist::closed_from() const {
  const bool fits = any_ && any_->fits == MemoryFit::kYes;
  return fits ? std::max(seconds_of(any_), kMostSlower * fastest()) : kNothingYet;
}

std::optional<Seconds> Shortlist::best() const {
  return any_ ? std::optional(any_->iteration) : std::nullopt;
}

void Shortlist::offer(const Planned& planned, bool runs) {
  keep_better(any_, planned);
  if (!runs) return;
  keep_better(fastest_, planned);
  if (planned.fits != MemoryFit::kYes) return;
  keep_better(simple_.at(static_cast<size_t>(mechanisms_of(planned.point))), planned);
  if (planned.point.pipeline == 1) keep_better(no_pipeline_, planned);
  if (planned.peak <= kRoomyShare * limit_) keep_better(roomy_, planned);
}

const Planned* Shortlist::simplest() const {
  for (const Entry& each : simple_) {
    if (each && each->iteration.value() <= kNearlyAsFast * fastest()) return &*each;
  }
  return nullptr;
}

std::vector<Planned> Shortlist::rows() const {
  std::vector<Planned> rows;
  const auto add = [&](const Planned* planned, PlanIdea idea) {
    if (planned == nullptr || planned->iteration.value() > kMostSlower * seconds_of(fastest_))
      return;
    const auto same = std::ranges::find(rows, planned->id, &Planned::id);
    Planned& row = same != rows.end() ? *same : rows.emplace_back(*planned);
    row.ideas.push_back(idea);
  };
  const auto of = [](const Entry& entry) { return entry ? &*entry : nullptr; };
  if (fastest_) rows.push_back(*fastest_);
  add(simplest(), PlanIdea::kSimplest);
  add(of(no_pipeline_), PlanIdea::kNoPipeline);
  add(of(roomy_), PlanIdea::kRoomy);
  std::ranges::stable_sort(rows, is_before);
  if (any_ && (!fastest_ || is_before(*any_, *fastest_))) {
    rows.push_back(*any_);
    rows.back().ideas = {PlanIdea::kBeyond};
  }
  return rows;
}

void name_ideas(std::vector<Planned>& rows) {
  std::vector<Framework> seen;
  for (Planned& row : rows) {
    std::vector<std::string> names;
    if (&row == &rows.front()) names.emplace_back("fastest");
    if (row.rank_by_replay == 1 && &row != &rows.front()) names.emplace_back("fastest by replay");
    std::vector<Framework> others = row.runs_on;
    std::erase_if(others, [&](Framework each) { return std::ranges::count(seen, each) > 0; });
    if (!others.empty() && &row != &rows.front()) {
      names.push_back(fmt::format("fastest on {}", frameworks_text(others)));
    }
    seen.insert(seen.end(), others.begin(), others.end());
    for (const PlanIdea idea : row.ideas) {
      names.emplace_back(kPlanIdeaNames.at(static_cast<size_t>(idea)));
    }
    row.idea = fmt::format("{}", fmt::join(names, ", "));
  }
}

}  // namespace pipesim
