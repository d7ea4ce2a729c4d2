#include "sim/layouts/ranking.h"

#include <algorithm>
#include <tuple>

namespace pipesim {
namespace {

auto divided_as(const PlanPoint& point) {
  return std::tie(point.tensor, point.context, point.expert, point.expert_tensor, point.pipeline,
                  point.micro_batch, point.exchange, point.dispatcher);
}

bool recomputes_no_more(RecomputeGranularity a, RecomputeGranularity b) {
  return (a | b) == b || b == RecomputeGranularity::kFull;
}

// True if `a` gives up less than `b` for memory.
bool gives_less(const PlanPoint& a, const PlanPoint& b) {
  const bool no_more =
      recomputes_no_more(a.recompute, b.recompute) && (a.modules | b.modules) == b.modules;
  return no_more && (a.recompute != b.recompute || a.modules != b.modules);
}

}  // namespace

bool same_sizes(const PlanPoint& a, const PlanPoint& b) { return divided_as(a) == divided_as(b); }

bool same_but_chunks(PlanPoint a, const PlanPoint& b) {
  a.chunks = b.chunks;
  a.split = b.split;
  a.recompute_layers = b.recompute_layers;
  return a == b;
}

// Layouts that fit stand before those that fit tightly.
bool Ranking::Before::operator()(const Planned& a, const Planned& b) const {
  if (a.fits != b.fits) return a.fits > b.fits;
  return std::tie(a.iteration, a.id) < std::tie(b.iteration, b.id);
}

// True beside one of the runs before it.
bool Ranking::is_needless(const Planned& planned) const {
  const PlanPoint& point = planned.point;
  if (point.recompute == RecomputeGranularity::kNone && !point.modules.any()) return false;
  const auto end = planned_.find(planned);
  return std::any_of(planned_.begin(), end, [&](const Planned& other) {
    if (!gives_less(other.point, point)) return false;
    PlanPoint less = point;
    less.recompute = other.point.recompute;
    less.recompute_layers = other.point.recompute_layers;
    less.modules = other.point.modules;
    return folds_ ? same_but_chunks(less, other.point) : less == other.point;
  });
}

bool Ranking::rank() {
  const Planned* before = last();
  rows_.clear();
  for (auto each = planned_.begin(); each != planned_.end() && rows_.size() < wanted_; ++each) {
    const auto says_the_same = [&](const Planned* row) {
      if (folds_) return same_but_chunks(row->point, each->point);
      return row->iteration == each->iteration && same_sizes(row->point, each->point);
    };
    if (std::ranges::none_of(rows_, says_the_same) && !is_needless(*each)) rows_.push_back(&*each);
  }
  return before != nullptr && (last() == nullptr || Before()(*before, *last()));
}

const Planned* Ranking::last() const {
  return rows_.empty() || rows_.size() < wanted_ ? nullptr : rows_.back();
}

}  // namespace pipesim
