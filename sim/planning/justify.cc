#include "sim/planning/justify.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/pipeline/dependencies.h"

namespace pipesim {
namespace {

constexpr int kKinds = 3;
constexpr double kGain = 0.003;  // pushes that shorten by less seldom are followed by others

int row_of(PassKind kind, int vs) {
  return kKinds * vs + (kind == PassKind::kF ? 0 : kind == PassKind::kB ? 1 : 2);
}
PassKind kind_of(int row) {
  constexpr std::array kKindOf{PassKind::kF, PassKind::kB, PassKind::kW};
  return kKindOf[row % kKinds];
}

}  // namespace

Justifier::Justifier(const Problem& problem)
    : placement_(problem.placement),
      microbatches_(problem.shape.microbatches),
      objective_(problem.objective),
      device_of_(static_cast<size_t>(kKinds * placement_.virtual_stages())),
      order_(placement_.devices()),
      placed_(placement_.devices()),
      stretches_(placement_.devices()),
      from_(placement_.devices()),
      ends_(device_of_.size(), microbatches_),
      next_(placement_.devices()),
      missing_(placement_.devices()),
      slack_(placement_.devices(), kNever) {
  for (auto& rows : rows_) rows.resize(device_of_.size());
  for (int vs = 0; vs < placement_.virtual_stages(); ++vs) add(problem, vs);
}

void Justifier::add(const Problem& problem, int vs) {
  const StageCost& cost = problem.stage(vs);
  const std::array seconds{cost.forward, cost.backward_input, cost.backward_weight};
  const Bytes freed = cost.activation - cost.weight_stash;  // by B; it may take instead
  const std::array acquired{cost.activation, std::max(Bytes(0), -1 * freed), Bytes(0)};
  const std::array released{Bytes(0), std::max(Bytes(0), freed), cost.weight_stash};
  for (int kind = 0; kind < kKinds; ++kind) {
    const int row = kKinds * vs + kind;
    device_of_[row] = problem.placement.device(vs);
    Row& early = rows_[kEarly][row];
    Row& late = rows_[kLate][row];
    early.seconds = late.seconds = std::round(seconds[kind].value() * 1e12);
    double& slack = slack_[placement_.device(vs)];
    slack = std::min(slack, std::max(0.0, early.seconds - 1));
    early.acquired = late.released = acquired[kind].value();
    early.released = late.acquired = released[kind].value();
    const StagePass source = source_of(problem.placement, {kind_of(row), vs});
    if (!source.exists()) continue;
    wait_for(row, row_of(source.kind, source.vs),
             std::round(problem.transfer(source.vs, vs).value() * 1e12));
  }
}

void Justifier::wait_for(int row, int source, double lag) {
  rows_[kEarly][row].after[0] = {source, lag};
  auto& after = rows_[kLate][source].after;
  (after[0].row < 0 ? after[0] : after[1]) = {row, lag};
}

PlanTime Justifier::run(const PassLists& lists) {
  load(lists);
  push_early();
  PlanTime least = time();
  best_ = order_;
  for (double before = kNever; least.time < (1 - kGain) * before;) {
    before = least.time;
    push_late(before);
    push_early();
    if (time() >= least) break;
    least = time();
    best_ = order_;
  }
  return least;
}

PlanTime Justifier::time(const PassLists& lists) {
  load(lists);
  std::vector<double> clock(lists.size(), 0), first_start(lists.size(), kNever);
  std::ranges::fill(from_, 0);
  push<kEarly>([&](int d, const Row& row, const Item&, double earliest) {
    const double start = std::max(earliest, clock[d]);
    first_start[d] = std::min(first_start[d], start);
    return clock[d] = start + row.seconds;
  });
  PlanTimer timer(objective_);
  for (size_t d = 0; d < lists.size(); ++d) timer.add(first_start[d], clock[d]);
  return timer.time();
}

void Justifier::load(const PassLists& lists) {
  for (size_t d = 0; d < lists.size(); ++d) {
    order_[d].clear();
    for (const Pass& pass : lists[d]) {
      const int vs = placement_.virtual_stage(static_cast<int>(d), pass.chunk);
      order_[d].push_back({row_of(pass.kind, vs), static_cast<int>(pass.microbatch)});
    }
  }
}

void Justifier::save(PassLists& lists) const {
  for (size_t d = 0; d < lists.size(); ++d) {
    lists[d].clear();
    for (const auto& [row, microbatch] : best_[d]) {
      lists[d].push_back(make_pass(kind_of(row), microbatch, placement_.chunk(row / kKinds)));
    }
  }
}

PlanTime Justifier::time() const {
  PlanTimer timer(objective_);
  for (const auto& stretches : stretches_) {
    timer.add(stretches.front().start, stretches.back().end);
  }
  return timer.time();
}

void Justifier::push_early() {
  std::ranges::fill(from_, 0);
  place_all<kEarly>();
  std::swap(order_, placed_);
}

// Each device may end so much later than its own start or, where a makespan counts, than that of
// all.
void Justifier::push_late(double most) {
  for (size_t d = 0; d < stretches_.size(); ++d) {
    const double since = objective_ == Objective::kMakespan ? 0 : stretches_[d].front().start;
    from_[d] = -(since + most);
  }
  place_all<kLate>();
  for (auto& placed : placed_) std::ranges::reverse(placed);
  std::swap(order_, placed_);
}

template <Justifier::Direction direction>
void Justifier::place_all() {
  for (auto& placed : placed_) placed.clear();
  for (auto& stretches : stretches_) stretches.clear();
  push<direction>([this](int d, const Row& row, const Item& item, double earliest) {
    return place(d, row, item, earliest);
  });
}

template <Justifier::Direction direction, class Place>
[[gnu::flatten]] void Justifier::push(const Place& place) {
  std::ranges::fill(ends_.cells(), kNever);
  std::ranges::fill(next_, 0);
  std::ranges::fill(missing_, Item{});
  for (int d = 0; d < placement_.devices(); ++d) ready_.push_back(d);
  while (!ready_.empty()) {
    const int d = ready_.back();
    ready_.pop_back();
    advance<direction>(d, place);
  }
}

// Places passes until one waits for what is not placed.
template <Justifier::Direction direction, class Place>
void Justifier::advance(int d, const Place& place) {
  const auto& order = order_[d];
  for (size_t& next = next_[d]; next < order.size(); ++next) {
    const Item item = direction == kEarly ? order[next] : order[order.size() - 1 - next];
    const Row& row = rows_[direction][item.row];
    double start = from_[d];
    for (const Wait& wait : row.after) {
      if (wait.row < 0) break;
      const double end = ends_(wait.row, item.microbatch);
      if (end == kNever) {
        missing_[d] = {wait.row, item.microbatch};
        return;
      }
      start = std::max(start, end + wait.lag);
    }
    ends_(item.row, item.microbatch) = place(d, row, item, start);
    for (const Wait& wait : rows_[1 - direction][item.row].after) {
      if (wait.row < 0) break;
      const int other = device_of_[wait.row];
      if (missing_[other] == item) {
        missing_[other] = {};
        ready_.push_back(other);
      }
    }
  }
}

// Into the first gap from `earliest` on that holds it, where the stretches behind it leave room.
double Justifier::place(int d, const Row& row, const Item& item, double earliest) {
  const auto& stretches = stretches_[d];
  // Its input may be the first of a stretch, and take no time.
  const auto fits_before = [&](const Stretch& stretch) {
    return earliest < stretch.start && earliest + row.seconds <= stretch.start &&
           (row.acquired == 0 || room_.fits(stretch.peak + row.acquired));
  };
  const auto start_behind = [&](size_t placed) {
    return placed > 0 ? std::max(earliest, stretches[placed - 1].end) : earliest;
  };
  size_t at = stretches.size();
  for (size_t i = at; i > 0 && fits_before(stretches[i - 1]); --i) {
    if (start_behind(i - 1) + row.seconds <= stretches[i - 1].start) at = i - 1;
  }
  const double start = start_behind(at);
  const double end = start + row.seconds;
  const double peak = (at > 0 ? stretches[at - 1].held : 0) + row.acquired;
  room_.take(peak);
  insert(d, at, item, {.start = start, .end = end, .peak = peak, .held = peak - row.released});
  return end;
}

// Before the stretch `at`, which it does not reach beyond.
void Justifier::insert(int d, size_t at, const Item& item, const Stretch& one) {
  auto& stretches = stretches_[d];
  auto& placed = placed_[d];
  const size_t first = at < stretches.size() ? stretches[at].first : placed.size();
  const double more = one.held - (at > 0 ? stretches[at - 1].held : 0);
  placed.insert(placed.begin() + static_cast<std::ptrdiff_t>(first), item);
  for (size_t later = at; later < stretches.size(); ++later) {
    Stretch& stretch = stretches[later];
    ++stretch.first;
    stretch.peak += more;
    stretch.held += more;
    room_.take(stretch.peak);
  }
  const double slack = slack_[d];
  const auto here = stretches.begin() + static_cast<std::ptrdiff_t>(at);
  const bool joins_next = here != stretches.end() && here->start - one.end <= slack;
  if (at > 0 && one.start - stretches[at - 1].end <= slack) {
    Stretch& before = stretches[at - 1];
    const Stretch& last = joins_next ? *here : one;
    before.end = last.end;
    before.held = last.held;
    before.peak = std::max({before.peak, one.peak, last.peak});
    if (joins_next) stretches.erase(here);
  } else if (joins_next) {
    here->first = first;
    here->start = one.start;
    here->peak = std::max(here->peak, one.peak);
  } else {
    stretches.insert(here, one)->first = first;
  }
}

}  // namespace pipesim
