#include "schedules/zb_v_rounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pipesim {

RoundsPlanner::RoundsPlanner(const Problem& problem)
    : last_(problem.shape.devices - 1),
      microbatches_(problem.shape.microbatches),
      objective_(problem.objective),
      devices_(problem.shape.devices),
      forward_arrival_(2 * devices_.size(), microbatches_),
      backward_arrival_(forward_arrival_),
      backwards_(devices_.size(), 2 * microbatches_),
      allowed_(devices_.size()),
      wanted_(devices_.size()),
      stuck_(devices_.size() + 2),
      lists_(devices_.size()) {
  for (const StageCost& cost : problem.stages) transfer_.push_back(ticks(cost.transfer));
  for (int d = 0; d <= last_; ++d) {
    for (const int c : {0, 1}) {
      const StageCost& cost = problem.stage(stage(d, c));
      Chunk& chunk = at(d).at(c);
      chunk.forward = ticks(cost.forward);
      chunk.backward = ticks(cost.backward_input);
      chunk.weight = ticks(cost.backward_weight);
      chunk.activation = cost.activation.value();
      chunk.weight_stash = cost.weight_stash.value();
      at(d).spare -= microbatches_ * (chunk.forward + chunk.backward + chunk.weight);
    }
    most_work_ = std::max(most_work_, -at(d).spare);
    lists_[d].reserve(6 * microbatches_);
  }
  for (Device& device : devices_) device.spare += most_work_;
}

void RoundsPlanner::set_limit(Bytes limit) {
  room_.set_limit(limit);
  reset();
  warm_up();
  even_out();
  run_backwards();
  start_ = {devices_, lists_, most_idle_};
}

// How much less each device idled than the one that idled most.
std::vector<double> RoundsPlanner::slack() const {
  std::vector<double> slack;
  for (const Device& device : devices_) slack.push_back(most_idle_ - device.idle);
  return slack;
}

[[gnu::flatten]] PlanTime RoundsPlanner::run(const RoundsChoices& choices, const PlanTime& most) {
  choices_ = choices;
  // A device has its work left, beside what it has idled.
  const auto hopeless = [&] {
    PlanTimer timer(objective_);
    for (const Device& device : devices_) {
      timer.add(device.first_start, device.first_start + most_work_ + device.idle);
    }
    return timer.time() >= most;
  };
  go_back_to_start();
  met_forward_ = met_backward_ = false;
  for (bool any = true; any && !hopeless();) {
    any = run_forwards();
    any = run_backwards() || any;
  }
  if (hopeless()) return {};
  PlanTimer timer(objective_);
  for (int d = 0; d <= last_; ++d) {
    while (at(d).owed > 0) run_weight(d);
    timer.add(at(d).first_start, at(d).clock);
  }
  return timer.time();
}

void RoundsPlanner::reset() {
  for (Device& device : devices_) {
    for (Chunk& chunk : device.chunk) chunk.f = chunk.b = chunk.w = 0;
    device.clock = device.first_start = 0;
    device.idle = -device.spare;
    device.owed = device.next_weight = 0;
  }
  for (auto& list : lists_) list.clear();
  std::ranges::fill(stuck_, std::uint8_t{0});
  most_idle_ = 0;
}

bool RoundsPlanner::same_with(const RoundsChoices& others) const {
  return (others.delay_forward == choices_.delay_forward || !met_forward_) &&
         (others.delay_backward == choices_.delay_backward || !met_backward_);
}

// Messages that were sent before stay where they are.
void RoundsPlanner::go_back_to_start() {
  devices_ = start_.devices;
  lists_ = start_.lists;
  std::ranges::fill(stuck_, std::uint8_t{0});
  most_idle_ = start_.most_idle;
}

// One F0 everywhere; then, from the last device to the first, its first F1, before it as many F0 as
// end before that arrives.
void RoundsPlanner::warm_up() {
  for (int d = 0; d <= last_; ++d) run_forward(d, 0);
  const auto one_more = [this](int last) {
    for (int d = 0; d <= last; ++d) {
      if (!fits(at(d), 0)) return false;
    }
    for (int d = 0; d <= last; ++d) run_forward(d, 0);
    return true;
  };
  for (int d = last_; d >= 0; --d) {
    const Device& device = at(d);
    // Until its first B the device takes another d pairs of F, to keep up with the first device.
    const double pairs = (d + 1) * (device.at(0).activation + device.at(1).activation);
    while (d < last_ && device.at(0).f < microbatches_ && room_.fits(device.held() + pairs) &&
           device.clock + device.at(0).forward <= forward_arrival(d, 1)) {
      if (!one_more(d)) break;
    }
    run_forward(d, 1);
  }
}

// F0 and F1 in turn until no device has run fewer F than the one before it, and each has run more
// F1 than that.
void RoundsPlanner::even_out() {
  int chunk = 0;
  const auto run_from = [&](int first) {
    bool any = false;
    for (int d = last_; d >= first; --d) {
      if (!can_forward(d, chunk)) continue;
      run_forward(d, chunk);
      any = true;
    }
    chunk = 1 - chunk;
    return any;
  };
  const auto is_even = [this](int d) {
    const int mine = at(d).at(1).f;
    const int before = at(d - 1).at(1).f;
    return at(d).at(0).f + mine >= at(d - 1).at(0).f + before &&
           (mine > before || before == microbatches_);
  };
  for (int d = 1; d <= last_; ++d) {
    while (!is_even(d) && (run_from(d) || run_from(d))) {
    }
  }
}

// One B on every device that has one: those of chunk 0 go up the pipeline, those of chunk 1 down.
bool RoundsPlanner::run_backwards() {
  bool any = false;
  const auto try_to_run = [&](int d, int chunk) {
    if (stuck_[d + 1] != 0 || !can_backward(d, chunk)) return false;
    bool* met = chunk == 0 ? nullptr : &met_backward_;
    fill_gap(d, backward_arrival(d, chunk), choices_.delay_backward || chunk == 0, met);
    run_backward(d, chunk);
    any = true;
    return true;
  };
  for (int d = 0; d <= last_; ++d) wanted_[d] = wanted_backward(d);
  for (int d = last_; d >= 0; --d) {
    int& wanted = wanted_[d];
    if (wanted == 0 && !try_to_run(d, 0)) wanted = 1;
  }
  for (int d = 0; d <= last_; ++d) {
    if (wanted_[d] == 1 && !try_to_run(d, 1)) try_to_run(d, 0);
  }
  return any;
}

// The chunk whose B the device should run next; -1 for none.
int RoundsPlanner::wanted_backward(int d) const {
  const Device& device = at(d);
  if (device.at(0).b == microbatches_) return -1;
  if (device.at(0).b >= device.at(1).b) return 1;
  if (d == last_ || device.at(1).b == microbatches_) return 0;
  return at(d + 1).at(0).b > device.at(0).b ? 0 : 1;
}

// One F on every device that has one.
bool RoundsPlanner::run_forwards() {
  bool any = false;
  for (int d = 0; d <= last_; ++d) {
    std::uint8_t& stuck = stuck_[d + 1];
    if (stuck != 0) continue;
    const int chunk = wanted_forward(d);
    if (chunk < 0) {
      stuck = can_backward(d, 0) || can_backward(d, 1) ? 0 : 1;
      continue;
    }
    make_room(d, at(d).at(chunk).activation);
    fill_gap(d, forward_arrival(d, chunk), choices_.delay_forward, &met_forward_);
    run_forward(d, chunk);
    any = true;
  }
  return any;
}

int RoundsPlanner::wanted_forward(int d) {
  if (at(d).at(1).f < at(d).at(0).f && can_forward(d, 1)) return 1;
  return can_forward(d, 0) ? 0 : -1;
}

bool RoundsPlanner::fits(const Device& device, int c) {
  if (!room_.fits(device.held_without_owed() + device.at(c).activation)) return false;
  const int ahead = device.at(0).f + 1 - device.at(1).f;
  return c == 1 || room_.fits(ahead * device.at(0).activation + device.at(1).activation);
}

bool RoundsPlanner::can_forward(int d, int c) {
  const int next = at(d).at(c).f;
  if (next == microbatches_) return false;
  const int sent = c == 0      ? (d == 0 ? microbatches_ : at(d - 1).at(0).f)
                   : d < last_ ? at(d + 1).at(1).f
                               : at(d).at(0).f;
  return sent > next && fits(at(d), c);
}

bool RoundsPlanner::can_backward(int d, int c) const {
  const int next = at(d).at(c).b;
  if (c == 1) return (d == 0 ? at(d).at(1).f : at(d - 1).at(1).b) > next;
  return (d == last_ ? at(d).at(1).b : at(d + 1).at(0).b) > next;
}

double RoundsPlanner::forward_arrival(int d, int c) const {
  const int vs = stage(d, c);
  return vs == 0 ? kNoWait : forward_arrival_(vs - 1, at(d).at(c).f);
}

double RoundsPlanner::backward_arrival(int d, int c) const {
  const int vs = stage(d, c);
  return vs == 2 * last_ + 1 ? kNoWait : backward_arrival_(vs + 1, at(d).at(c).b);
}

// Runs owed W while the device would wait for `arrival`; `met`: where `delay` decided it.
void RoundsPlanner::fill_gap(int d, double arrival, bool delay, bool* met) {
  const Device& device = at(d);
  while (device.owed > 0 && device.clock < arrival) {
    const int c = backwards_(d, device.next_weight);
    if (device.clock + device.at(c).weight > arrival) {
      const double bearable = std::max(most_idle_, allowed_[d]) - device.idle;
      if (arrival - device.clock <= bearable) return;
      if (met != nullptr) *met = true;
      if (!delay) return;
    }
    run_weight(d);
  }
}

void RoundsPlanner::make_room(int d, double bytes) {
  while (at(d).owed > 0 && !room_.fits(at(d).held() + bytes)) run_weight(d);
}

void RoundsPlanner::run_forward(int d, int c) {
  Chunk& chunk = at(d).at(c);
  append(d, PassKind::kF, chunk.f, c, forward_arrival(d, c), chunk.forward);
  const int vs = stage(d, c);
  forward_arrival_(vs, chunk.f++) = at(d).clock + transfer_[vs];
}

void RoundsPlanner::run_backward(int d, int c) {
  Device& device = at(d);
  Chunk& chunk = device.at(c);
  append(d, PassKind::kB, chunk.b, c, backward_arrival(d, c), chunk.backward);
  backwards_(d, device.next_weight + device.owed++) = static_cast<std::uint8_t>(c);
  const int vs = stage(d, c);
  const double transfer = vs > 0 ? transfer_[vs - 1] : 0;
  backward_arrival_(vs, chunk.b++) = device.clock + transfer;
}

void RoundsPlanner::run_weight(int d) {
  Device& device = at(d);
  const int c = backwards_(d, device.next_weight++);
  append(d, PassKind::kW, device.at(c).w++, c, kNoWait, device.at(c).weight);
  --device.owed;
}

void RoundsPlanner::append(int d, PassKind kind, int microbatch, int chunk, double arrival,
                           double seconds) {
  Device& device = at(d);
  const double start = std::max(device.clock, arrival);
  if (device.at(0).f > 0) {
    device.idle += start - device.clock;
    most_idle_ = std::max(most_idle_, device.idle);
  } else {
    device.first_start = start;
  }
  device.clock = start + seconds;
  const size_t here = d + 1;
  stuck_[here - 1] = stuck_[here] = stuck_[here + 1] = 0;
  lists_[d].push_back(make_pass(kind, microbatch, chunk));
}

RoundsPlan PublishedRounds::plan(Bytes limit, const PlanTime& most) {
  RoundsPlan best{most, {}};
  rounds_.set_limit(limit);
  std::array<bool, kChoices.size()> same{};  // as a choice before
  for (size_t i = 0; i < kChoices.size(); ++i) {
    if (same[i]) continue;
    std::array<bool, kChoices.size()> alike;
    alike.fill(true);
    RoundsPlan own{most, {}};
    for (rounds_.allow(no_idle_);; rounds_.allow(rounds_.slack())) {
      const PlanTime time = rounds_.run(kChoices[i], own.time);
      for (size_t other = i + 1; other < kChoices.size(); ++other) {
        alike[other] = alike[other] && rounds_.same_with(kChoices[other]);
      }
      if (time >= own.time) break;
      own = {time, rounds_.lists()};
    }
    for (size_t other = i + 1; other < kChoices.size(); ++other) {
      same[other] = same[other] || alike[other];
    }
    if (own.time < best.time) best = std::move(own);
  }
  return best.lists.empty() ? RoundsPlan{} : std::move(best);
}

}  // namespace pipesim
