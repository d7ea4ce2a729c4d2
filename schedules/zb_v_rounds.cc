#include "schedules/zb_v_rounds.h"

#include <algorithm>

namespace pipesim {

RoundsPlanner::RoundsPlanner(const Problem& problem)
    : last_(problem.shape.devices - 1),
      microbatches_(problem.shape.microbatches),
      player_(problem, ticks),
      start_(player_),
      allowed_(problem.shape.devices),
      wanted_(problem.shape.devices),
      stuck_(problem.shape.devices + 2) {
  const double most = player_.most_work();
  for (int d = 0; d <= last_; ++d) player_.device(d).spare = most - player_.device(d).work;
}

void RoundsPlanner::set_limit(Bytes limit) {
  room_.set_limit(limit);
  player_.reset();
  std::ranges::fill(stuck_, std::uint8_t{0});
  warm_up();
  even_out();
  run_backwards();
  start_ = player_;
}

// How much less each device idled than the one that idled most.
std::vector<double> RoundsPlanner::slack() const {
  std::vector<double> slack;
  for (int d = 0; d <= last_; ++d) slack.push_back(player_.most_idle() - player_.device(d).idle);
  return slack;
}

[[gnu::flatten]] PlanTime RoundsPlanner::run(const RoundsChoices& choices, const PlanTime& most) {
  choices_ = choices;
  player_ = start_;
  std::ranges::fill(stuck_, std::uint8_t{0});
  met_forward_ = met_backward_ = false;
  for (bool any = true; any;) {
    if (player_.least_time() >= most) return {};
    any = run_forwards();
    any = run_backwards() || any;
  }
  return player_.finish();
}

bool RoundsPlanner::same_with(const RoundsChoices& others) const {
  return (others.delay_forward == choices_.delay_forward || !met_forward_) &&
         (others.delay_backward == choices_.delay_backward || !met_backward_);
}

// One F0 everywhere; then, from the last device to the first, its first F1, before it as many F0 as
// end before that arrives.
void RoundsPlanner::warm_up() {
  for (int d = 0; d <= last_; ++d) run_forward(d, 0);
  const auto one_more = [this](int last) {
    for (int d = 0; d <= last; ++d) {
      if (!fits(d, 0)) return false;
    }
    for (int d = 0; d <= last; ++d) run_forward(d, 0);
    return true;
  };
  for (int d = last_; d >= 0; --d) {
    const Player::Chunk& first = at(d, 0);
    // Until its first B the device takes another d pairs of F, to keep up with the first device.
    const double pairs = (d + 1) * (first.activation + at(d, 1).activation);
    while (d < last_ && first.f < microbatches_ && room_.fits(player_.held(d) + pairs) &&
           player_.device(d).clock + first.forward <= player_.forward_arrival(at(d, 1))) {
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
    const int mine = at(d, 1).f;
    const int before = at(d - 1, 1).f;
    return at(d, 0).f + mine >= at(d - 1, 0).f + before &&
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
    fill_gap(d, player_.backward_arrival(at(d, chunk)), choices_.delay_backward || chunk == 0, met);
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
  const int b0 = at(d, 0).b;
  const int b1 = at(d, 1).b;
  if (b0 == microbatches_) return -1;
  if (b0 >= b1) return 1;
  return b1 == microbatches_ || can_backward(d, 0) ? 0 : 1;
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
    make_room(d, at(d, chunk).activation);
    fill_gap(d, player_.forward_arrival(at(d, chunk)), choices_.delay_forward, &met_forward_);
    run_forward(d, chunk);
    any = true;
  }
  return any;
}

int RoundsPlanner::wanted_forward(int d) {
  if (at(d, 1).f < at(d, 0).f && can_forward(d, 1)) return 1;
  return can_forward(d, 0) ? 0 : -1;
}

bool RoundsPlanner::fits(int d, int c) {
  const Player::Chunk& first = at(d, 0);
  const Player::Chunk& second = at(d, 1);
  const double held = first.held_without_owed() + second.held_without_owed();
  if (!room_.fits(held + at(d, c).activation)) return false;
  return c == 1 || room_.fits((first.f + 1 - second.f) * first.activation + second.activation);
}

bool RoundsPlanner::can_forward(int d, int c) {
  return player_.forward_sent(at(d, c)) && fits(d, c);
}

bool RoundsPlanner::can_backward(int d, int c) const { return player_.backward_sent(at(d, c)); }

// Runs owed W while the device would wait for `arrival`; `met`: where `delay` decided it.
void RoundsPlanner::fill_gap(int d, double arrival, bool delay, bool* met) {
  const Player::Device& device = player_.device(d);
  while (device.owed() > 0 && device.clock < arrival) {
    if (device.clock + player_.owed_longest(d).weight > arrival) {
      const double bearable = std::max(player_.most_idle(), allowed_[d]) - device.idle;
      if (arrival - device.clock <= bearable) return;
      if (met != nullptr) *met = true;
      if (!delay) return;
    }
    player_.run_weight(d);
  }
}

void RoundsPlanner::make_room(int d, double bytes) {
  while (player_.device(d).owed() > 0 && !room_.fits(player_.held(d) + bytes)) {
    player_.run_weight(d);
  }
}

void RoundsPlanner::run_forward(int d, int c) {
  player_.run_forward(at(d, c));
  unstick(d);
}

void RoundsPlanner::run_backward(int d, int c) {
  player_.run_backward(at(d, c));
  unstick(d);
}

OrderWithin PublishedRounds::plan(Bytes limit, const PlanTime& most) {
  OrderWithin best{{}, most};
  rounds_.set_limit(limit);
  std::array<bool, kChoices.size()> same{};  // as a choice before
  for (size_t i = 0; i < kChoices.size(); ++i) {
    if (same[i]) continue;
    std::array<bool, kChoices.size()> alike;
    alike.fill(true);
    OrderWithin own{{}, most};
    for (rounds_.allow(no_idle_);; rounds_.allow(rounds_.slack())) {
      const PlanTime time = rounds_.run(kChoices[i], own.time);
      for (size_t other = i + 1; other < kChoices.size(); ++other) {
        alike[other] = alike[other] && rounds_.same_with(kChoices[other]);
      }
      if (time >= own.time) break;
      own.keep_shorter(time, rounds_.lists());
    }
    for (size_t other = i + 1; other < kChoices.size(); ++other) {
      same[other] = same[other] || alike[other];
    }
    best.keep_shorter(own.time, std::move(own.lists));
  }
  return best.lists.empty() ? OrderWithin{} : std::move(best);
}

}  // namespace pipesim
