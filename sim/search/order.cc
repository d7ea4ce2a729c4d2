#include "sim/search/order.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "sim/execution/pair_seconds.h"

namespace pipesim {
namespace {

constexpr double kLittle = 1e-3;
constexpr double kNever = std::numeric_limits<double>::infinity();

// Backwards of a block, in the order of `blocks_`.
constexpr std::array kBeside{PassKind::kBW, PassKind::kB, PassKind::kW};

}  // namespace

Order::Order(const Problem& problem, int units, double limit, std::vector<Word> words, bool blocks,
             const Spelling& spelling)
    : Order(problem, units, limit, std::move(words), blocks, spelling,
            letter_table(problem, spelling, units)) {}

Order::Order(const Problem& problem, int units, double limit, std::vector<Word> words, bool blocks,
             const Spelling& spelling, LetterTable table)
    : problem_(problem),
      p_(problem.shape.devices),
      v_(problem.shape.chunks),
      m_(units),
      letters_(spelling.kinds * v_),
      mapped_(!spelling.units.empty()),
      plain_(!mapped_ && problem.kind_of_unit.empty()),
      joins_(blocks),
      count_(std::move(table.count)),
      length_(p_),
      limit_(limit),
      from_zero_(problem.objective == Objective::kMakespan),
      table_(std::move(table.letters)),
      costs_(std::move(table.costs)),
      kind_of_unit_(problem.kind_of_unit),
      awaited_(std::move(table.awaited)),
      first_stage_backward_(table.first_stage_backward),
      words_(std::move(words)),
      ends_(table_.size(), m_),
      trial_ends_(ends_),
      base_(table_.size()),
      done_(table_.size()),
      from_(p_),
      position_(p_),
      queue_(p_),
      queued_(p_),
      clock_(p_),
      first_(p_) {
  add_lengths();
  if (mapped_) {
    units_ = Grid<std::uint32_t>(table_.size(), m_, LetterTable::kNoWait);
    for (size_t letter = 0; letter < table_.size(); ++letter) {
      std::ranges::copy(spelling.units[letter], units_.row(letter).begin());
    }
  }
  start_ = end_ = held_ = work_after_ = trial_start_ = trial_end_ = Grid<double>(p_, longest_);
  counts_ = Grid<std::uint32_t>(p_ * longest_, letters_);
  if (blocks && kind_of_unit_.empty()) add_blocks(problem);
}

void Order::add_lengths() {
  for (int d = 0; d < p_; ++d) {
    const auto counts = count_.begin() + index(d, 0);
    length_[d] = static_cast<int>(std::accumulate(counts, counts + letters_, 0U));
  }
  longest_ = *std::ranges::max_element(length_);
}

void Order::add_blocks(const Problem& problem) {
  const Placement& place = problem.placement;
  blocks_.resize(static_cast<size_t>(p_) * v_ * v_ * kBeside.size());
  for (int d = 0; d < p_; ++d) {
    for (int f = 0; f < place.chunks(d); ++f) {
      for (int b = 0; b < place.chunks(d); ++b) {
        for (size_t kind = 0; kind < kBeside.size(); ++kind) {
          const OverlappedPair pair{make_pass(PassKind::kF, 0, f), make_pass(kBeside[kind], 0, b)};
          const auto seconds =
              pair_seconds(problem, place.virtual_stage(d, f), place.virtual_stage(d, b), pair);
          blocks_[((d * v_ + f) * v_ + b) * kBeside.size() + kind] = seconds->value();
        }
      }
    }
  }
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
    ++counts[letter_of(word[i - 1])];
  }
}

// Sums the device's work after each position up to `last`; the entries behind `last` hold.
void Order::count_work(int d, int first, int last) {
  const auto work = work_after_.row(d);
  for (int i = last; i >= first; --i) {
    work[i] =
        i + 1 < length_[d] ? work[i + 1] + seconds_at(d, i + 1, cost_at(d, i + 1).seconds) : 0;
  }
}

int Order::begin_of(int d, int position) const {
  while (is_joined(d, position)) --position;
  return position;
}

int Order::end_of(int d, int position) const {
  do ++position;
  while (is_joined(d, position));
  return position;
}

double Order::block_seconds(int d, int position) const {
  const Word& word = words_[d];
  const int forward = letter_of(word[position]);
  const int backward = letter_of(word[position + 1]);
  const size_t kind = is_joined(d, position + 2) ? 0 : backward / v_;
  if (blocks_.empty()) {
    const Placement& place = problem_.placement;
    const OverlappedPair pair{
        {PassKind::kF, static_cast<std::uint16_t>(forward), unit_at(d, position)},
        {kBeside[kind], static_cast<std::uint16_t>(backward % v_), unit_at(d, position + 1)}};
    return pair_seconds(problem_, place.virtual_stage(d, forward),
                        place.virtual_stage(d, backward % v_), pair)
        ->value();
  }
  return blocks_[((d * v_ + forward) * v_ + backward % v_) * kBeside.size() + kind];
}

// A block's seconds are its first pass's.
double Order::seconds_at(int d, int position, double alone) const {
  if (is_joined(d, position)) return 0;
  return is_joined(d, position + 1) ? block_seconds(d, position) : alone;
}

// Recomputes the bytes held in [first, last]; false above the limit. A block gives back at once
// what its B and W give back.
bool Order::fits(int d, int first, int last) {
  const auto held = held_.row(d);
  for (int i = first; i <= last; ++i) {
    const double bytes = cost_at(d, i).bytes;
    const double after = held[i] + bytes;
    if (bytes > 0 && after > limit_ && !(is_joined(d, i) && is_joined(d, i + 1))) return false;
    if (i + 1 < length_[d]) held[i + 1] = after;
  }
  return true;
}

// True if the pass at a position may cross all of [first, last]. None is of its own letter, nor its
// unit's F, R, B or W of the same chunk.
bool Order::crosses(int d, int position, int first, int last) const {
  const Word& word = words_[d];
  const int letter = letter_of(word[position]);
  const std::uint32_t unit = unit_at(d, position);
  for (int i = first; i <= last; ++i) {
    const int other = letter_of(word[i]);
    if (other == letter) return false;
    if (other % v_ == letter % v_ && unit_at(d, i) == unit) return false;
  }
  return true;
}

bool Order::move(int d, int from, int to, double bound) {
  const int begin = begin_of(d, from);
  const int end = end_of(d, from);
  const bool later = to > from;
  const int first = later ? begin : begin_of(d, to);
  const int last = (later ? end_of(d, to) : end) - 1;
  if (last < end && first == begin) return false;  // within its block
  for (int i = begin; i < end; ++i) {
    if (!crosses(d, i, later ? end : first, later ? last : begin - 1)) return false;
  }
  keep(d, first, last);
  const auto word = words_[d].begin();
  std::rotate(word + first, word + (later ? end : begin), word + last + 1);
  return attempt(d, first, bound);
}

// True if the pass at `weight` is a single W of the unit and chunk of the B at `backward`.
bool Order::is_weight_of(int d, int weight, int backward) const {
  if (weight >= length_[d] || is_joined(d, weight) || is_joined(d, weight + 1)) return false;
  return letter_of(words_[d][weight]) == letter_of(words_[d][backward]) + v_ &&
         letter_of(words_[d][backward]) / v_ == 1 && unit_at(d, weight) == unit_at(d, backward);
}

// True if the F at `from` may stand before the backward at `first`, of another unit.
bool Order::may_join(int d, int from, int first) const {
  if (unit_at(d, from) == unit_at(d, first)) return false;
  return from < first ? crosses(d, from, from + 1, first - 1) : crosses(d, from, first, from - 1);
}

bool Order::join(int d, int from, int to, bool whole, double bound) {
  if (!is_forward(d, from)) std::swap(from, to);
  if (!is_forward(d, from) || !is_backward(d, to)) return false;
  const int begin = begin_of(d, to);
  const int first = is_forward(d, begin) ? begin + 1 : begin;
  int end = end_of(d, to);
  if (whole && end == first + 1 && is_weight_of(d, end, first)) ++end;
  if (from == begin && end == end_of(d, to)) return false;  // it is that block
  if (!may_join(d, from, first)) return false;
  keep(d, std::min(from, begin), std::max(end_of(d, from), end) - 1);
  take_apart(d, from);
  take_apart(d, to);
  const auto word = words_[d].begin();
  int joined = first;  // the first that is joined to F
  if (from < first) {
    std::rotate(word + from, word + from + 1, word + first);
  } else {
    std::rotate(word + first, word + from, word + from + 1);
    ++joined;
  }
  for (int i = joined; i < joined + end - first; ++i) word[i] |= kJoined;
  return attempt(d, 0, bound);
}

bool Order::split(int d, int at, bool forward_last, double bound) {
  const int begin = begin_of(d, at);
  const int end = end_of(d, at);
  if (end == begin + 1) return false;
  keep(d, begin, end - 1);
  take_apart(d, at);
  const auto word = words_[d].begin();
  if (forward_last) std::rotate(word + begin, word + begin + 1, word + end);
  return attempt(d, 0, bound);
}

void Order::take_apart(int d, int position) {
  const int end = end_of(d, position);
  for (int i = begin_of(d, position) + 1; i < end; ++i) words_[d][i] &= ~kJoined;
}

// Keeps the words of [first, last], which a change is about to replace.
void Order::keep(int d, int first, int last) {
  const auto word = words_[d].begin();
  kept_.assign(word + first, word + last + 1);
  kept_first_ = first;
}

// Evaluates the change of what was kept, and undoes what is refused. From `least` on, positions
// have other work after them: all of them where passes are joined or split.
bool Order::attempt(int d, int least, double bound) {
  const int first = kept_first_;
  const int last = first + static_cast<int>(kept_.size()) - 1;
  count_letters(d, first, last);
  bool good = fits(d, first, last);
  if (good) {
    count_work(d, least, last);
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
  std::ranges::copy(kept_, words_[d].begin() + first);
  count_letters(d, first, last);
  fits(d, first, last);
  count_work(d, least, last);
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
      std::copy_n(count_.begin() + index(d, 0), letters_, base);
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

// When what an index's n-th occurrence waits for is there; never, where that has not run.
template <bool plain>
double Order::arrival(int letter, std::uint32_t number) const {
  const int source = table_[letter].source;
  if (source < 0) return 0;
  const std::uint32_t awaited = !plain && mapped_ ? awaited_(letter, number) : number;
  if (!plain && awaited == LetterTable::kNoWait) return 0;
  if (done_[source] <= awaited) return kNever;
  const Ends& sent = awaited < base_[source] ? ends_ : trial_ends_;
  return sent(source, awaited) + cost<plain>(letter, number).message;
}

// The same of the pass at a position and all that are joined to it. A joined pass waits for nothing
// more.
template <bool plain>
double Order::arrival_at(int d, int position) const {
  if (is_joined(d, position)) return 0;
  double latest = 0;
  do {
    const int letter = index(d, letter_of(words_[d][position]));
    latest = std::max(latest, arrival<plain>(letter, done_[letter]));
  } while (is_joined(d, ++position));
  return latest;
}

bool Order::advance(int d, double bound) {
  if (plain_) return joins_ ? advance<true, true>(d, bound) : advance<false, true>(d, bound);
  return joins_ ? advance<true, false>(d, bound) : advance<false, false>(d, bound);
}

// Runs a device until it waits; false when it can no longer end within the bound.
template <bool blocks, bool plain>
bool Order::advance(int d, double bound) {
  const Word& word = words_[d];
  const auto starts = trial_start_.row(d);
  const auto ends = trial_end_.row(d);
  const auto work_after = work_after_.row(d);
  const int index_of_first = index(d, 0);
  double first = first_[d];
  double now = clock_[d];
  const int length = length_[d];
  const int from = position_[d];
  int i = from;
  for (; i < length; ++i) {
    const int letter = index_of_first + (blocks ? letter_of(word[i]) : word[i]);
    const std::uint32_t number = done_[letter];
    const double arrived = blocks ? arrival_at<plain>(d, i) : arrival<plain>(letter, number);
    if (arrived == kNever) break;
    now = std::max(now, arrived);
    starts[i] = blocks && is_joined(word[i]) ? starts[i - 1] : now;
    if (first < 0) first = now;
    const double seconds = cost<plain>(letter, number).seconds;
    now += blocks ? seconds_at(d, i, seconds) : seconds;
    ends[i] = trial_ends_(letter, number) = now;
    done_[letter] = number + 1;
    if (now + work_after[i] - first > bound) {
      evaluated_ += i + 1 - from;
      return false;
    }
    if (table_[letter].receiver >= 0) wake(table_[letter].receiver);
  }
  evaluated_ += i - from;
  position_[d] = i;
  first_[d] = first;
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
  for (int letter = 0; letter < p_ * letters_; ++letter) {
    take(ends_, trial_ends_, letter, base_[letter]);
  }
  score_ = trial_score_;
  cost_ = trial_cost_;
}

}  // namespace pipesim
