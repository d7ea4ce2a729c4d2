#include "sim/search/order.h"

#include <algorithm>

namespace pipesim {
namespace {

constexpr double kLittle = 1e-3;
constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

Order::Order(const Problem& problem, int microbatches, double limit, std::vector<Word> words)
    : p_(problem.shape.devices),
      v_(problem.shape.chunks),
      m_(microbatches),
      longest_(3 * v_ * m_),
      letters_(3 * v_),
      length_(p_),
      limit_(limit),
      from_zero_(problem.objective == Objective::kMakespan),
      table_(p_ * letters_),
      words_(std::move(words)),
      start_(p_, longest_),
      end_(start_),
      held_(start_),
      work_after_(start_),
      counts_(p_ * longest_, letters_),
      ends_(table_.size(), m_),
      trial_start_(start_),
      trial_end_(start_),
      trial_ends_(ends_),
      base_(table_.size()),
      done_(table_.size()),
      from_(p_),
      position_(p_),
      queue_(p_),
      queued_(p_),
      clock_(p_),
      first_(p_) {
  costs_.resize(table_.size() * std::max<size_t>(1, problem.kinds.size()));
  kind_of_unit_ = problem.kind_of_unit;
  for (int vs = 0; vs < problem.placement.virtual_stages(); ++vs) add_stage(problem, vs);
  for (int d = 0; d < p_; ++d) length_[d] = 3 * problem.placement.chunks(d) * m_;
}

void Order::add_stage(const Problem& problem, int vs) {
  const Placement& place = problem.placement;
  for (const PassKind kind : {PassKind::kF, PassKind::kB, PassKind::kW}) {
    const StagePass pass{kind, vs};
    Letter& letter = table_[index(place, pass)];
    const StagePass source = source_of(place, pass);
    // On its own stage a word keeps F before B before W.
    if (source.exists() && source.vs != vs) letter.source = index(place, source);
    const StagePass target = target_of(place, pass);
    if (target.exists() && place.device(target.vs) != place.device(vs)) {
      letter.receiver = place.device(target.vs);
    }
  }
  if (problem.kinds.empty()) add_costs(place, vs, problem.stages, 0);
  for (size_t kind = 0; kind < problem.kinds.size(); ++kind) {
    add_costs(place, vs, problem.kinds[kind].stages, kind);
  }
  if (place.upstream(vs) < 0) first_stage_backward_ = index(place, {PassKind::kB, vs});
}

void Order::add_costs(const Placement& place, int vs, const std::vector<StageCost>& stages,
                      size_t kind) {
  const StageCost& cost = stages[vs];
  const auto add = [&](PassKind pass, Seconds seconds, Bytes bytes) {
    Cost& one = costs_[kind * table_.size() + index(place, {pass, vs})];
    one = {seconds.value(), bytes.value(), 0};
    const StagePass source = source_of(place, {pass, vs});
    if (source.exists() && source.vs != vs) {
      one.message = stages[std::min(source.vs, vs)].transfer.value();
    }
  };
  add(PassKind::kF, cost.forward, cost.activation);
  add(PassKind::kB, cost.backward_input, cost.weight_stash - cost.activation);
  add(PassKind::kW, cost.backward_weight, -cost.weight_stash);
}

int Order::index(const Placement& place, const StagePass& pass) const {
  const int kind = pass.kind == PassKind::kF ? 0 : pass.kind == PassKind::kB ? 1 : 2;
  return index(place.device(pass.vs), kind * v_ + place.chunk(pass.vs));
}

bool Order::evaluate(double most) {
  for (int d = 0; d < p_; ++d) {
    count_letters(d, 0, length_[d] - 1);
    if (!fits(d, 0, length_[d] - 1)) return false;
    count_work(d, 0, length_[d] - 1);
  }
  std::ranges::fill(from_, 0);
  // Scores are above costs.
  if (!trial((1 + kLittle) * most) || trial_cost_ > most) return false;
  accept();
  return true;
}

// From the word; the entries before `first` hold.
void Order::count_letters(int d, int first, int last) {
  const Word& word = words_[d];
  for (int i = std::max(first, 1); i <= last; ++i) {
    const auto counts = counts_.row(row(d, i));
    std::ranges::copy(counts_.row(row(d, i - 1)), counts.begin());
    ++counts[word[i - 1]];
  }
}

// Sums the device's work after each position up to `last`; the entries behind `last` hold.
void Order::count_work(int d, int first, int last) {
  const auto work = work_after_.row(d);
  for (int i = last; i >= first; --i) {
    work[i] = i + 1 < length_[d] ? work[i + 1] + cost_at(d, i + 1).seconds : 0;
  }
}

// Recomputes the bytes held in [first, last]; false above the limit.
bool Order::fits(int d, int first, int last) {
  const auto held = held_.row(d);
  for (int i = first; i <= last; ++i) {
    const double bytes = cost_at(d, i).bytes;
    const double after = held[i] + bytes;
    if (bytes > 0 && after > limit_) return false;
    if (i + 1 < length_[d]) held[i + 1] = after;
  }
  return true;
}

// A pass may not cross one of its own letter, nor its microbatch's F, B or W of the same chunk.
bool Order::allowed(int d, int from, int to) const {
  const Word& word = words_[d];
  const auto number = [&](int i) { return counts_(row(d, i), word[i]); };
  const int letter = word[from];
  const std::uint32_t unit = number(from);
  const int step = to > from ? 1 : -1;
  for (int i = from + step; i != to + step; i += step) {
    const int other = word[i];
    if (other == letter) return false;
    if (other % v_ == letter % v_ && number(i) == unit) return false;
  }
  return true;
}

bool Order::move(int d, int from, int to, double bound) {
  if (!allowed(d, from, to)) return false;
  Word& word = words_[d];
  const int first = std::min(from, to);
  const int last = std::max(from, to);
  const auto turn = [&](int a, int b) {
    const auto begin = word.begin();
    if (a < b) {
      std::rotate(begin + a, begin + a + 1, begin + b + 1);
    } else {
      std::rotate(begin + b, begin + a, begin + a + 1);
    }
  };
  turn(from, to);
  count_letters(d, first, last);
  bool good = fits(d, first, last);
  if (good) {
    count_work(d, first, last);
    const double time = start_(d, first);
    for (int other = 0; other < p_; ++other) {
      from_[other] = other == d ? first : position_at(other, time);
    }
    good = trial(bound);
  }
  if (good) {
    accept();
    return true;
  }
  turn(to, from);
  count_letters(d, first, last);
  fits(d, first, last);
  count_work(d, first, last);
  return false;
}

int Order::position_at(int d, double time) const {
  const auto starts = start_.row(d).first(length_[d]);
  return static_cast<int>(std::ranges::lower_bound(starts, time) - starts.begin());
}

double Order::first_stage_backward(int unit) const {
  return ends_(first_stage_backward_, unit) - costs_[first_stage_backward_].seconds;
}

// Evaluates from the positions `from_` on; what comes before is as accepted.
bool Order::trial(double bound) {
  start_trial();
  while (queued_count_ > 0) {
    const int d = queue_[head_];
    head_ = head_ + 1 == queue_.size() ? 0 : head_ + 1;
    --queued_count_;
    queued_[d] = 0;
    if (!advance(d, bound)) return false;
  }
  double latest = 0;
  double mean = 0;
  for (int d = 0; d < p_; ++d) {
    if (position_[d] < length_[d]) return false;  // deadlock
    const double span = clock_[d] - first_[d];
    latest = std::max(latest, span);
    mean += span / static_cast<double>(p_);
  }
  trial_cost_ = latest;
  trial_score_ = latest + kLittle * mean;
  return trial_score_ <= bound;
}

// Every device stands at its `from_`, and is queued.
void Order::start_trial() {
  for (int d = 0; d < p_; ++d) {
    const int from = from_[d];
    const auto base = base_.begin() + index(d, 0);
    if (from < length_[d]) {
      std::ranges::copy(counts_.row(row(d, from)), base);
    } else {
      std::fill_n(base, letters_, static_cast<std::uint32_t>(m_));
    }
    clock_[d] = from > 0 ? end_(d, from - 1) : 0;
    first_[d] = from > 0 ? start_(d, 0) : -1;
    if (from_zero_) first_[d] = 0;
    position_[d] = from;
    queue_[d] = d;
    queued_[d] = 1;
  }
  done_ = base_;
  head_ = tail_ = 0;
  queued_count_ = queue_.size();
}

// Runs a device until it waits; false when it can no longer end within the bound.
bool Order::advance(int d, double bound) {
  const Word& word = words_[d];
  const auto starts = trial_start_.row(d);
  const auto ends = trial_end_.row(d);
  const auto work_after = work_after_.row(d);
  double& first = first_[d];
  double now = clock_[d];
  const int length = length_[d];
  int i = position_[d];
  for (; i < length; ++i) {
    const int of = index(d, word[i]);
    const Letter& letter = table_[of];
    const std::uint32_t unit = done_[of];
    const Cost& cost = this->cost(of, unit);
    if (const int source = letter.source; source >= 0) {
      if (done_[source] <= unit) break;
      const Ends& sent = unit < base_[source] ? ends_ : trial_ends_;
      now = std::max(now, sent(source, unit) + cost.message);
    }
    starts[i] = now;
    if (first < 0) first = now;
    now += cost.seconds;
    ends[i] = trial_ends_(of, unit) = now;
    done_[of] = unit + 1;
    ++evaluated_;
    if (now + work_after[i] - first > bound) return false;
    if (letter.receiver >= 0) wake(letter.receiver);
  }
  position_[d] = i;
  clock_[d] = now;
  return true;
}

void Order::wake(int d) {
  if (queued_[d] != 0) return;
  queued_[d] = 1;
  queue_[tail_] = d;
  tail_ = tail_ + 1 == queue_.size() ? 0 : tail_ + 1;
  ++queued_count_;
}

void Order::accept() {
  const auto take = [](Grid<double>& to, const Grid<double>& from, int row, auto first) {
    std::ranges::copy(from.row(row).subspan(first), to.row(row).begin() + first);
  };
  for (int d = 0; d < p_; ++d) {
    take(start_, trial_start_, d, from_[d]);
    take(end_, trial_end_, d, from_[d]);
  }
  for (int of = 0; of < p_ * letters_; ++of) take(ends_, trial_ends_, of, base_[of]);
  score_ = trial_score_;
  cost_ = trial_cost_;
}

}  // namespace pipesim
