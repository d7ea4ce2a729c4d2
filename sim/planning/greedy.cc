#include "sim/planning/greedy.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/core/error.h"
#include "sim/planning/device_bound.h"

namespace pipesim {
namespace {

constexpr int kBuckets = 256;  // a power of two

constexpr bool is_forward(GreedyStep step) {
  return step == GreedyStep::kF0 || step == GreedyStep::kF1;
}
constexpr int chunk_of(GreedyStep step) {
  return step == GreedyStep::kF0 || step == GreedyStep::kB0 ? 0 : 1;
}
constexpr GreedyStep forward_of(int chunk) {
  return chunk == 0 ? GreedyStep::kF0 : GreedyStep::kF1;
}
constexpr GreedyStep backward_of(int chunk) {
  return chunk == 0 ? GreedyStep::kB0 : GreedyStep::kB1;
}

}  // namespace

GreedyPlanner::GreedyPlanner(const Problem& problem)
    : player_(problem, ticks), devices_(problem.shape.devices), buckets_(kBuckets, -1) {
  if (problem.placement != Placement::vee(problem.shape.devices)) {
    throw LogicError("greedy: no two chunks in V-shape");
  }
  double shortest = kNever;
  double longest = 1;
  for (int d = 0; d < player_.devices(); ++d) {
    for (const Player::Chunk& chunk : player_.chunks(d)) {
      shortest = std::min({shortest, chunk.forward, chunk.backward, chunk.weight});
      longest = std::max({longest, chunk.weight, chunk.forward + chunk.to_downstream,
                          chunk.backward + chunk.to_upstream});
    }
  }
  buckets_per_tick_ = 1 / std::max(shortest / 2, 2 * longest / kBuckets);
  count_work(problem.objective);
  share_memory(problem);
}

void GreedyPlanner::count_work(Objective objective) {
  std::vector<double> work;
  double way = 0;
  for (int d = 0; d < player_.devices(); ++d) {
    work.push_back(way + player_.device(d).work);
    if (objective == Objective::kMakespan) way += chunk(d, 0).forward + chunk(d, 0).to_downstream;
  }
  most_work_ = std::ranges::max(work);
  for (int d = 0; d < player_.devices(); ++d) player_.device(d).spare = most_work_ - work[d];
}

// Gives chunk 0 the share of a device's memory that it has of the bytes times seconds of a
// microbatch that never waits (Little's law). More in-flight F0 would leave too little for F1.
void GreedyPlanner::share_memory(const Problem& problem) {
  const Placement& place = problem.placement;
  const StageWays ways(problem);
  const auto held = [&](int device, int chunk) {
    const int vs = place.virtual_stage(device, chunk);
    const StageCost& cost = problem.stage(vs);
    const double seconds = cost.forward.value() + ways.back[vs] + cost.backward_input.value();
    return cost.activation.value() * seconds +
           cost.weight_stash.value() * cost.backward_weight.value();
  };
  for (const StageCost& cost : problem.stages) {
    largest_chunk_ = std::max(largest_chunk_, cost.activation.value());
  }
  for (int d = 0; d < place.devices(); ++d) {
    const double first = held(d, 0);
    if (first <= 0) continue;
    devices_[d].chunks_of_f0 = chunk(d, 0).activation / largest_chunk_ * (1 + held(d, 1) / first);
  }
}

void GreedyPlanner::reset() {
  player_.reset();
  for (Device& device : devices_) {
    device.sent = 0;
    device.bucket = -1;
  }
  std::ranges::fill(buckets_, -1);
  waiting_ = 0;
  await(0, kF0, true, kNoWait);
  wake_at(0, 0);
}

[[gnu::flatten]] PlanTime GreedyPlanner::run(const GreedyRules& rules, const PlanTime& most) {
  rules_ = rules;
  steps_ = {kF1, kB1, kB0, kF0};
  if (rules.b1_before_f1) std::swap(steps_[0], steps_[1]);
  for (int place = 0; place < kSteps; ++place) bit_[steps_[place]] = 1U << place;
  reset();
  for (size_t bucket = 0; waiting_ > 0; bucket = (bucket + 1) % kBuckets) {
    while (buckets_[bucket] >= 0) act(buckets_[bucket]);
    if (PlanTime{most_work_ + player_.most_idle()} >= most) return {};
  }
  return player_.finish();
}

// The device is free, or something has come for it: what does it do?
void GreedyPlanner::act(int d) {
  take_out(d);
  const double now = devices_[d].wake;
  const Choice choice = choose(d);
  if (choice.now) {
    player_.wait_until(d, now);
    start(d, *choice.now);
  } else if (player_.device(d).owed() > 0 && (choice.lacks_memory || choice.next > now)) {
    player_.wait_until(d, now);
    player_.run_weight(d);
    wake_at(d, player_.device(d).clock);
  } else if (choice.next < kNever) {
    wake_at(d, choice.next);
  }
}

GreedyPlanner::Choice GreedyPlanner::choose(int d) {
  const Device& device = devices_[d];
  Choice choice;
  for (unsigned left = device.sent; left != 0; left &= left - 1) {
    const Step step = steps_[std::countr_zero(left)];
    if (!fits(d, step)) continue;
    const double arrived = device.arrival[step];
    if (arrived > device.wake) {
      choice.next = std::min(choice.next, arrived);
    } else if (!fits_now(d, step)) {
      choice.lacks_memory = true;
    } else {
      const double patience = rules_.patience * chunk(d, 0).forward;
      const bool waits = step == kF0 && choice.next - device.wake <= patience && warms_up(d);
      if (!waits) choice.now = step;
      break;
    }
  }
  return choice;
}

bool GreedyPlanner::warms_up(int d) const { return chunk(d, 0).b == 0 && chunk(d, 1).b == 0; }

// Once the W have run that the device owes.
bool GreedyPlanner::fits(int d, Step step) {
  if (!is_forward(step)) return true;
  const Player::Chunk& first = chunk(d, 0);
  const Player::Chunk& second = chunk(d, 1);
  const double held = first.held_without_owed() + second.held_without_owed();
  if (!room_.fits(held + (step == kF0 ? first : second).activation)) return false;
  if (step == kF1) return true;
  if (first.f > second.f && !has_share(d)) return false;
  return room_.fits((first.f + 1 - second.f) * first.activation + second.activation);
}

// For one more F0. Shares are whole chunks: fewer limits tell runs apart, and F1 has the rest.
bool GreedyPlanner::has_share(int d) {
  const double f0 = chunk(d, 0).f + 1 - chunk(d, 0).b - rules_.beyond_share;
  return room_.fits(std::ceil(f0 * devices_[d].chunks_of_f0 / kRounding) * largest_chunk_);
}

bool GreedyPlanner::fits_now(int d, Step step) {
  return !is_forward(step) || player_.device(d).owed() == 0 ||
         room_.fits(chunk(d, 0).held() + chunk(d, 1).held() + chunk(d, chunk_of(step)).activation);
}

// At the device's clock.
void GreedyPlanner::start(int d, Step step) {
  Player::Chunk& own = player_.at_row(2 * d + chunk_of(step));
  if (is_forward(step)) {
    player_.start_forward(own);
    await(d, step, player_.forward_sent(own), player_.forward_arrival(own));
    wake_at(d, player_.device(d).clock);
    const Player::Chunk& to = player_.at_row(own.downstream);
    if (&to == &own) {
      if (own.b == own.f - 1) deliver(d, kB1, player_.backward_arrival(own));
    } else if (to.f == own.f - 1) {
      deliver(to.device, forward_of(to.number), player_.forward_arrival(to));
    }
  } else {
    player_.start_backward(own);
    await(d, step, player_.backward_sent(own), player_.backward_arrival(own));
    wake_at(d, player_.device(d).clock);
    if (own.upstream < 0) return;
    const Player::Chunk& to = player_.at_row(own.upstream);
    if (to.b == own.b - 1) {
      deliver(to.device, backward_of(to.number), player_.backward_arrival(to));
    }
  }
}

// Notes when the input of the next pass of a step comes, if it has been sent.
void GreedyPlanner::await(int d, Step step, bool sent, double arrival) {
  Device& device = devices_[d];
  device.arrival[step] = arrival;
  device.sent = (device.sent & ~bit_[step]) | (sent ? bit_[step] : 0);
}

// Wakes the device for a pass that waits for this.
void GreedyPlanner::deliver(int d, Step step, double arrival) {
  await(d, step, true, arrival);
  Device& device = devices_[d];
  const double wake = std::max(arrival, player_.device(d).clock);
  if (device.bucket >= 0 && device.wake <= wake) return;
  if (device.bucket >= 0) take_out(d);
  wake_at(d, wake);
}

void GreedyPlanner::wake_at(int d, double time) {
  Device& device = devices_[d];
  device.wake = time;
  const auto bucket =
      static_cast<int>(static_cast<std::int64_t>(time * buckets_per_tick_) % kBuckets);
  device.bucket = bucket;
  int& first = buckets_[bucket];
  device.earlier = -1;
  device.later = first;
  if (first >= 0) devices_[first].earlier = d;
  first = d;
  ++waiting_;
}

void GreedyPlanner::take_out(int d) {
  Device& device = devices_[d];
  if (device.later >= 0) devices_[device.later].earlier = device.earlier;
  if (device.earlier >= 0) {
    devices_[device.earlier].later = device.later;
  } else {
    buckets_[device.bucket] = device.later;
  }
  device.bucket = -1;
  --waiting_;
}

}  // namespace pipesim
