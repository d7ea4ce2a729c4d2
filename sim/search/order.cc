#include "sim/search/order.h"

#include <algorithm>
#include <numeric>

namespace pipesim {
namespace {

constexpr int kForward = 0;
constexpr int kBackward = 1;
constexpr double kLittle = 1e-3;

}  // namespace

Order::Order(const Problem& problem, int microbatches, double limit, std::vector<Word> words,
             Objective objective)
    : p_(problem.shape.devices),
      v_(problem.shape.chunks),
      m_(microbatches),
      length_(3 * v_ * m_),
      letters_(3 * v_),
      limit_(limit),
      from_zero_(objective == Objective::kMakespan),
      chunks_(p_ * v_),
      words_(std::move(words)) {
  const Placement& place = problem.placement;
  const auto index = [&](int vs) { return place.device(vs) * v_ + place.chunk(vs); };
  for (int vs = 0; vs < p_ * v_; ++vs) {
    Chunk& chunk = chunks_[index(vs)];
    const StageCost& cost = problem.stage(vs);
    chunk.forward = cost.forward.value();
    chunk.backward = cost.backward_input.value();
    chunk.weight = cost.backward_weight.value();
    chunk.activation = cost.activation.value();
    chunk.stash = cost.weight_stash.value();
    chunk.from_downstream = cost.transfer.value();
    chunk.from_upstream = 0;
    if (const int up = place.upstream(vs); up >= 0) {
      chunk.up = index(up);
      chunk.up_device = place.device(up);
      chunk.from_upstream = problem.stage(up).transfer.value();
    }
    if (const int down = place.downstream(vs); down >= 0) {
      chunk.down = index(down);
      chunk.down_device = place.device(down);
    }
  }
  const size_t passes = row(p_);
  for (auto* array : {&start_, &end_, &held_, &work_after_, &trial_start_, &trial_end_}) {
    array->assign(passes, 0);
  }
  counts_.assign(passes * static_cast<size_t>(letters_), 0);
  const size_t units = chunks_.size() * static_cast<size_t>(m_);
  for (auto* array : {&forward_, &backward_, &trial_forward_, &trial_backward_}) {
    array->assign(units, 0);
  }
  base_.assign(p_ * letters_, 0);
  done_ = base_;
  for (auto* array : {&from_, &position_, &queue_}) array->assign(static_cast<size_t>(p_), 0);
  queued_.assign(p_, 0);
  clock_.assign(p_, 0);
  first_ = clock_;
}

bool Order::evaluate() {
  for (int d = 0; d < p_; ++d) {
    count_from(d, 0, length_ - 1);
    if (!fits(d, 0, length_ - 1)) return false;
  }
  std::ranges::fill(from_, 0);
  if (!trial(std::numeric_limits<double>::infinity())) return false;
  accept();
  return true;
}

// Letters counted and work left, from the word; the entries before `first` hold.
void Order::count_from(int d, int first, int last) {
  const Word& word = words_[d];
  const auto letters = static_cast<size_t>(letters_);
  for (int i = std::max(first, 1); i <= last; ++i) {
    const size_t at = row(d) + static_cast<size_t>(i);
    std::copy_n(&counts_[(at - 1) * letters], letters, &counts_[at * letters]);
    ++counts_[at * letters + word[static_cast<size_t>(i) - 1]];
  }
  const auto seconds = [&](int i) {
    const int letter = word[i];
    const Chunk& chunk = chunks_[d * v_ + letter % v_];
    const int kind = letter / v_;
    return kind == kForward ? chunk.forward : kind == kBackward ? chunk.backward : chunk.weight;
  };
  for (int i = last; i >= first; --i) {
    const size_t at = row(d) + static_cast<size_t>(i);
    work_after_[at] = i + 1 < length_ ? work_after_[at + 1] + seconds(i + 1) : 0;
  }
}

// Recomputes the bytes held in [first, last]; false above the limit.
bool Order::fits(int d, int first, int last) {
  const Word& word = words_[d];
  for (int i = first; i <= last; ++i) {
    const int letter = word[i];
    const Chunk& chunk = chunks_[d * v_ + letter % v_];
    const size_t at = row(d) + static_cast<size_t>(i);
    const int kind = letter / v_;
    double held = held_[at];
    if (kind == kForward) {
      held += chunk.activation;
      if (held > limit_) return false;
    } else {
      held -= kind == kBackward ? chunk.activation - chunk.stash : chunk.stash;
    }
    if (i + 1 < length_) held_[at + 1] = held;
  }
  return true;
}

// A pass may not cross one of its own letter, nor its microbatch's F, B or W of the same chunk.
bool Order::allowed(int d, int from, int to) const {
  const Word& word = words_[d];
  const auto letters = static_cast<size_t>(letters_);
  const auto number = [&](int i) {
    return counts_[(row(d) + static_cast<size_t>(i)) * letters + word[i]];
  };
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
  bool good = fits(d, first, last);
  if (good) {
    count_from(d, first, last);
    const double time = start_[row(d) + static_cast<size_t>(first)];
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
  fits(d, first, last);
  count_from(d, first, last);
  return false;
}

int Order::position_at(int d, double time) const {
  const auto begin = start_.begin() + static_cast<std::ptrdiff_t>(row(d));
  return static_cast<int>(std::lower_bound(begin, begin + length_, time) - begin);
}

double Order::first_stage_backward(int unit) const {
  for (size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    if (chunks_[chunk].up < 0) {
      return backward_[chunk * static_cast<size_t>(m_) + static_cast<size_t>(unit)] -
             chunks_[chunk].backward;
    }
  }
  return 0;
}

// Evaluates from the positions `from_` on; what comes before is as accepted.
bool Order::trial(double bound) {
  const auto letters = static_cast<size_t>(letters_);
  const auto devices = static_cast<size_t>(p_);
  double latest = 0;
  for (size_t d = 0; d < devices; ++d) {
    const int from = from_[d];
    const size_t at = row(static_cast<int>(d)) + static_cast<size_t>(from);
    for (size_t l = 0; l < letters; ++l) {
      base_[d * letters + l] =
          from < length_ ? counts_[at * letters + l] : static_cast<std::uint32_t>(m_);
    }
    clock_[d] = from > 0 ? end_[at - 1] : 0;
    first_[d] = from > 0 ? start_[row(static_cast<int>(d))] : -1;
    if (from_zero_) first_[d] = 0;
    position_[d] = from;
    queue_[d] = static_cast<int>(d);
    queued_[d] = 1;
  }
  done_ = base_;
  head_ = tail_ = 0;
  queued_count_ = devices;
  while (queued_count_ > 0) {
    const int d = queue_[head_];
    head_ = head_ + 1 == devices ? 0 : head_ + 1;
    --queued_count_;
    queued_[d] = 0;
    if (!advance(d, bound)) return false;
  }
  double mean = 0;
  for (size_t d = 0; d < devices; ++d) {
    if (position_[d] < length_) return false;  // deadlock
    const double span = clock_[d] - first_[d];
    latest = std::max(latest, span);
    mean += span / static_cast<double>(p_);
  }
  trial_cost_ = latest;
  trial_score_ = latest + kLittle * mean;
  return trial_score_ <= bound;
}

// Runs a device until it waits; false when it can no longer end within the bound.
bool Order::advance(int d, double bound) {
  const auto device = static_cast<size_t>(d);
  const Word& word = words_[device];
  const auto m = static_cast<size_t>(m_);
  double now = clock_[device];
  int i = position_[device];
  for (; i < length_; ++i) {
    const int letter = word[i];
    const int kind = letter / v_;
    const auto c = static_cast<size_t>(d * v_ + letter % v_);
    const Chunk& chunk = chunks_[c];
    const auto slot = static_cast<size_t>(d * letters_ + letter);
    const std::uint32_t unit = done_[slot];
    const size_t result = c * m + unit;
    double arrival = 0;
    double end = 0;
    int receiver = -1;
    if (kind == kForward) {
      if (chunk.up >= 0) {
        const auto sender = static_cast<size_t>(chunk.up / v_ * letters_ + chunk.up % v_);
        if (done_[sender] <= unit) break;
        const size_t from = static_cast<size_t>(chunk.up) * m + unit;
        arrival =
            (unit < base_[sender] ? forward_[from] : trial_forward_[from]) + chunk.from_upstream;
      }
      arrival = std::max(arrival, now);
      end = trial_forward_[result] = arrival + chunk.forward;
      receiver = chunk.down_device;
    } else if (kind == kBackward) {
      if (chunk.down >= 0) {
        const auto sender = static_cast<size_t>(chunk.down / v_ * letters_ + v_ + chunk.down % v_);
        if (done_[sender] <= unit) break;
        const size_t from = static_cast<size_t>(chunk.down) * m + unit;
        arrival = (unit < base_[sender] ? backward_[from] : trial_backward_[from]) +
                  chunk.from_downstream;
      }
      arrival = std::max(arrival, now);
      end = trial_backward_[result] = arrival + chunk.backward;
      receiver = chunk.up_device;
    } else {
      arrival = now;
      end = now + chunk.weight;
    }
    const size_t at = row(d) + static_cast<size_t>(i);
    trial_start_[at] = arrival;
    trial_end_[at] = now = end;
    if (first_[device] < 0) first_[device] = arrival;
    done_[slot] = unit + 1;
    ++evaluated_;
    if (now + work_after_[at] - first_[device] > bound) return false;
    if (receiver >= 0 && receiver != d && queued_[receiver] == 0) {
      queued_[receiver] = 1;
      queue_[tail_] = receiver;
      tail_ = tail_ + 1 == queue_.size() ? 0 : tail_ + 1;
      ++queued_count_;
    }
  }
  position_[device] = i;
  clock_[device] = now;
  return true;
}

void Order::accept() {
  const auto m = static_cast<size_t>(m_);
  for (int d = 0; d < p_; ++d) {
    const auto first = row(d) + static_cast<size_t>(from_[d]);
    const auto last = row(d + 1);
    std::copy(&trial_start_[first], trial_start_.data() + last, &start_[first]);
    std::copy(&trial_end_[first], trial_end_.data() + last, &end_[first]);
    for (int c = 0; c < v_; ++c) {
      const auto chunk = static_cast<size_t>(d * v_ + c);
      const size_t f = chunk * m + base_[d * letters_ + c];
      const size_t b = chunk * m + base_[d * letters_ + v_ + c];
      std::copy(trial_forward_.data() + f, trial_forward_.data() + (chunk + 1) * m,
                forward_.data() + f);
      std::copy(trial_backward_.data() + b, trial_backward_.data() + (chunk + 1) * m,
                backward_.data() + b);
    }
  }
  score_ = trial_score_;
  cost_ = trial_cost_;
}

}  // namespace pipesim
