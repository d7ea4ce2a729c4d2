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
    : chunks_(problem.shape.chunks),
      microbatches_(problem.shape.microbatches),
      objective_(problem.objective),
      devices_(problem.shape.devices),
      arrivals_(devices_.size() * kSizeOf<Step>, microbatches_),
      backwards_(devices_.size(), chunks_ * microbatches_),
      buckets_(kBuckets, -1),
      lists_(devices_.size()) {
  const Placement& place = problem.placement;
  const bool vee = chunks_ == 2 && place == Placement::vee(problem.shape.devices);
  if (chunks_ != 1 && !vee) throw LogicError("greedy: neither one chunk nor a V");
  double shortest = kNever;
  double longest = 1;
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    add_stage(problem, vs);
    const Device& device = at(place.device(vs));
    const int chunk = place.chunk(vs);
    const double weight = device.weight[chunk];
    shortest = std::min(shortest, weight);
    longest = std::max(longest, weight);
    for (const Step step : {forward_of(chunk), backward_of(chunk)}) {
      shortest = std::min(shortest, device.seconds[step]);
      longest = std::max(longest, device.seconds[step] + device.hop[step]);
    }
  }
  buckets_per_tick_ = 1 / std::max(shortest / 2, 2 * longest / kBuckets);
  count_work();
  if (vee) share_memory(problem);
  for (auto& list : lists_) list.reserve(3 * backwards_.columns());
}

void GreedyPlanner::add_stage(const Problem& problem, int vs) {
  const StageCost& cost = problem.stage(vs);
  Device& device = at(problem.placement.device(vs));
  const int chunk = problem.placement.chunk(vs);
  device.seconds[forward_of(chunk)] = ticks(cost.forward);
  device.seconds[backward_of(chunk)] = ticks(cost.backward_input);
  device.weight[chunk] = ticks(cost.backward_weight);
  device.activation[chunk] = cost.activation.value();
  device.weight_stash[chunk] = cost.weight_stash.value();
  connect(problem, {PassKind::kF, vs});
  connect(problem, {PassKind::kB, vs});
}

void GreedyPlanner::count_work() {
  double way = 0;
  for (Device& device : devices_) {
    double each = device.weight[0] + device.weight[1];
    for (const double seconds : device.seconds) each += seconds;
    device.spare = -(way + microbatches_ * each);
    most_work_ = std::max(most_work_, -device.spare);
    if (objective_ == Objective::kMakespan) way += device.seconds[kF0] + device.hop[kF0];
  }
  for (Device& device : devices_) device.spare += most_work_;
}

void GreedyPlanner::connect(const Problem& problem, const StagePass& pass) {
  const Placement& place = problem.placement;
  const auto neighbour = [&place](const StagePass& of) {
    if (!of.exists()) return Neighbour{};
    const int chunk = place.chunk(of.vs);
    return Neighbour{place.device(of.vs),
                     of.kind == PassKind::kF ? forward_of(chunk) : backward_of(chunk)};
  };
  const StagePass target = target_of(place, pass);
  Device& device = at(place.device(pass.vs));
  const Step step = neighbour(pass).step;
  device.from[step] = neighbour(source_of(place, pass));
  device.to[step] = neighbour(target);
  device.hop[step] = target.exists() ? ticks(problem.transfer(pass.vs, target.vs)) : 0;
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
    at(d).chunks_of_f0 = at(d).activation[0] / largest_chunk_ * (1 + held(d, 1) / first);
  }
}

void GreedyPlanner::reset() {
  for (int d = 0; d < static_cast<int>(devices_.size()); ++d) {
    Device& device = at(d);
    device.sent = 0;
    std::ranges::fill(device.ran, 0);
    device.weights_ran.fill(0);
    device.clock = device.first_start = 0;
    device.idle = -device.spare;
    device.owed = device.next_weight = 0;
    device.bucket = -1;
    lists_[d].clear();
  }
  std::ranges::fill(buckets_, -1);
  waiting_ = 0;
  most_idle_ = 0;
  at(0).arrival[kF0] = 0;
  at(0).sent = bit_[kF0];
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
    if (PlanTime{most_work_ + most_idle_} >= most) return {};
  }
  PlanTimer timer(objective_);
  for (int d = 0; d < static_cast<int>(devices_.size()); ++d) {
    Device& device = at(d);
    while (device.owed > 0) start_weight(d);
    timer.add(device.first_start, device.clock);
  }
  return timer.time();
}

// The device is free, or something has come for it: what does it do?
void GreedyPlanner::act(int d) {
  take_out(d);
  Device& device = at(d);
  const double now = device.wake;
  const Choice choice = choose(device);
  if (choice.now) {
    wait_until(device, now);
    start(d, *choice.now);
  } else if (device.owed > 0 && (choice.lacks_memory || choice.next > now)) {
    wait_until(device, now);
    start_weight(d);
    wake_at(d, device.clock);
  } else if (choice.next < kNever) {
    wake_at(d, choice.next);
  }
}

GreedyPlanner::Choice GreedyPlanner::choose(const Device& device) {
  Choice choice;
  for (unsigned left = device.sent; left != 0; left &= left - 1) {
    const Step step = steps_[std::countr_zero(left)];
    if (!fits(device, step)) continue;
    const double arrived = device.arrival[step];
    if (arrived > device.wake) {
      choice.next = std::min(choice.next, arrived);
    } else if (!fits_now(device, step)) {
      choice.lacks_memory = true;
    } else {
      const double patience = rules_.patience * device.seconds[kF0];
      const bool waits = step == kF0 && choice.next - device.wake <= patience && warms_up(device);
      if (!waits) choice.now = step;
      break;
    }
  }
  return choice;
}

bool GreedyPlanner::warms_up(const Device& device) const {
  return device.ran[kB0] == 0 && device.ran[kB1] == 0;
}

// Once the W have run that the device owes.
bool GreedyPlanner::fits(const Device& device, Step step) {
  if (!is_forward(step)) return true;
  const int f0 = device.ran[kF0];
  const int f1 = device.ran[kF1];
  const double held =
      (f0 - device.ran[kB0]) * device.activation[0] + (f1 - device.ran[kB1]) * device.activation[1];
  if (!room_.fits(held + device.activation[chunk_of(step)])) return false;
  if (step == kF1 || chunks_ == 1) return true;
  if (f0 > f1 && !has_share(device)) return false;
  return room_.fits((f0 + 1 - f1) * device.activation[0] + device.activation[1]);
}

// For one more F0. Shares are whole chunks: fewer limits tell runs apart, and F1 has the rest.
bool GreedyPlanner::has_share(const Device& device) {
  const double f0 = device.ran[kF0] + 1 - device.ran[kB0] - rules_.beyond_share;
  return room_.fits(std::ceil(f0 * device.chunks_of_f0 / kRounding) * largest_chunk_);
}

bool GreedyPlanner::fits_now(const Device& device, Step step) {
  return !is_forward(step) || device.owed == 0 ||
         room_.fits(held(device) + device.activation[chunk_of(step)]);
}

double GreedyPlanner::held(const Device& device) const {
  double sum = 0;
  for (const int c : {0, 1}) {
    sum += device.ran[forward_of(c)] * device.activation[c] -
           device.ran[backward_of(c)] * (device.activation[c] - device.weight_stash[c]) -
           device.weights_ran[c] * device.weight_stash[c];
  }
  return sum;
}

void GreedyPlanner::wait_until(Device& device, double now) {
  if (device.ran[kF0] == 0) {
    device.first_start = now;
  } else {
    device.idle += now - device.clock;
    most_idle_ = std::max(most_idle_, device.idle);
  }
  device.clock = now;
}

// At the device's clock.
void GreedyPlanner::start(int d, Step step) {
  Device& device = at(d);
  const int microbatch = device.ran[step]++;
  const int chunk = chunk_of(step);
  device.clock += device.seconds[step];
  lists_[d].push_back(make_pass(is_forward(step) ? PassKind::kF : PassKind::kB, microbatch, chunk));
  if (!is_forward(step)) {
    backwards_(d, device.next_weight + device.owed++) = static_cast<std::uint8_t>(chunk);
  }
  const Neighbour from = device.from[step];
  const int next = microbatch + 1;
  if (from.device >= 0) {
    if (at(from.device).ran[from.step] > next) {
      device.arrival[step] = arrival(d, step, next);
    } else {
      device.sent &= ~bit_[step];
    }
  } else if (next == microbatches_) {
    device.sent &= ~bit_[step];
  }
  wake_at(d, device.clock);
  const Neighbour to = device.to[step];
  if (to.device >= 0) deliver(to, microbatch, device.clock + device.hop[step]);
}

void GreedyPlanner::deliver(const Neighbour& to, int microbatch, double time) {
  Device& device = at(to.device);
  arrival(to.device, to.step, microbatch) = time;
  if (device.ran[to.step] != microbatch) return;
  device.arrival[to.step] = time;
  device.sent |= bit_[to.step];
  const double wake = std::max(time, device.clock);
  if (device.bucket >= 0 && device.wake <= wake) return;
  if (device.bucket >= 0) take_out(to.device);
  wake_at(to.device, wake);
}

void GreedyPlanner::start_weight(int d) {
  Device& device = at(d);
  const int chunk = backwards_(d, device.next_weight++);
  device.clock += device.weight[chunk];
  --device.owed;
  lists_[d].push_back(make_pass(PassKind::kW, device.weights_ran[chunk]++, chunk));
}

void GreedyPlanner::wake_at(int d, double time) {
  Device& device = at(d);
  device.wake = time;
  const auto bucket =
      static_cast<int>(static_cast<std::int64_t>(time * buckets_per_tick_) % kBuckets);
  device.bucket = bucket;
  int& first = buckets_[bucket];
  device.earlier = -1;
  device.later = first;
  if (first >= 0) at(first).earlier = d;
  first = d;
  ++waiting_;
}

void GreedyPlanner::take_out(int d) {
  Device& device = at(d);
  if (device.later >= 0) at(device.later).earlier = device.earlier;
  if (device.earlier >= 0) {
    at(device.earlier).later = device.later;
  } else {
    buckets_[device.bucket] = device.later;
  }
  device.bucket = -1;
  --waiting_;
}

}  // namespace pipesim
