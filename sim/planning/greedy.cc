#include "sim/planning/greedy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/core/error.h"

namespace pipesim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1 + 1e-12;  // what k times a sum keeps fits into k times the sum
constexpr int kBuckets = 256;            // a power of two

// Whole picoseconds: sums of unlike passes then tie exactly where the times as written do.
double ticks(Seconds seconds) { return std::round(seconds.value() * 1e12); }

}  // namespace

GreedyPlanner::GreedyPlanner(const Problem& problem, Bytes limit)
    : chunks_(problem.shape.chunks),
      microbatches_(problem.shape.microbatches),
      limit_(limit.value() * kRounding),
      devices_(problem.shape.devices),
      arrivals_(devices_.size() * kKinds * static_cast<size_t>(microbatches_)),
      backwards_(2 * devices_.size() * static_cast<size_t>(microbatches_)),
      buckets_(kBuckets, -1),
      lists_(devices_.size()) {
  const Placement& place = problem.placement;
  const bool vee = chunks_ == 2 && place == Placement::vee(problem.shape.devices);
  if (chunks_ != 1 && !vee) throw LogicError("greedy: neither one chunk nor a V");
  double shortest = kNever;
  double longest = 1;
  for (int vs = 0; vs < place.virtual_stages(); ++vs) {
    const StageCost& cost = problem.stage(vs);
    Device& device = at(place.device(vs));
    const int chunk = place.chunk(vs);
    const auto c = static_cast<size_t>(chunk);
    device.seconds[c] = ticks(cost.forward);
    device.seconds[3 - c] = ticks(cost.backward_input);
    device.weight[c] = ticks(cost.backward_weight);
    device.activation[c] = cost.activation.value();
    device.weight_stash[c] = cost.weight_stash.value();
    // The neighbours on the way of a microbatch: forward to vs + 1, backward to vs - 1.
    const auto forward = [&](int stage) {
      return Neighbour{place.device(stage), place.chunk(stage)};
    };
    const auto back = [&](int stage) {
      return Neighbour{place.device(stage), 3 - place.chunk(stage)};
    };
    const int up = place.upstream(vs);
    const int down = place.downstream(vs);
    if (up >= 0) device.from[c] = forward(up);
    device.to[c] = down >= 0 ? forward(down) : back(vs);
    device.from[3 - c] = down >= 0 ? back(down) : forward(vs);
    if (up >= 0) device.to[3 - c] = back(up);
    device.hop[c] = down >= 0 ? ticks(cost.transfer) : 0;
    device.hop[3 - c] = up >= 0 ? ticks(problem.stage(up).transfer) : 0;
    device.spare -= microbatches_ * (device.seconds[c] + device.seconds[3 - c] + device.weight[c]);
    most_work_ = std::max(most_work_, -device.spare);
    shortest = std::min({shortest, device.seconds[c], device.seconds[3 - c], device.weight[c]});
    longest = std::max({longest, device.seconds[c] + device.hop[c],
                        device.seconds[3 - c] + device.hop[3 - c], device.weight[c]});
  }
  buckets_per_tick_ = 1 / std::max(shortest / 2, 2 * longest / kBuckets);
  for (Device& device : devices_) device.spare += most_work_;
  for (auto& list : lists_) {
    list.reserve(3 * static_cast<size_t>(chunks_) * static_cast<size_t>(microbatches_));
  }
}

void GreedyPlanner::reset() {
  const auto devices = static_cast<int>(devices_.size());
  for (int d = 0; d < devices; ++d) {
    Device& device = at(d);
    device.arrival.fill(kNever);
    device.ran.fill(0);
    device.weights_ran.fill(0);
    device.clock = device.first_start = 0;
    device.idle = -device.spare;
    device.owed = device.next_weight = 0;
    device.bucket = -1;
    device.most_f0 = microbatches_;
    if (rules_.share_memory && chunks_ == 2) {
      const double part = 1 - d / (2.0 * devices);
      const double of_one = (device.activation[0] + device.activation[1]) / 2;
      const double fit = part * limit_ / std::max(of_one, 1.0);
      if (fit < microbatches_) device.most_f0 = static_cast<int>(fit);
    }
    lists_[d].clear();
  }
  std::ranges::fill(buckets_, -1);
  waiting_ = 0;
  most_idle_ = 0;
  at(0).arrival[kF0] = 0;
  wake_at(0, 0);
}

double GreedyPlanner::run(const GreedyRules& rules, double bound) {
  rules_ = rules;
  reset();
  for (size_t bucket = 0; waiting_ > 0; bucket = (bucket + 1) % kBuckets) {
    while (buckets_[bucket] >= 0) act(buckets_[bucket]);
    if (most_work_ + most_idle_ >= bound) return kNever;
  }
  double cost = 0;
  for (int d = 0; d < static_cast<int>(devices_.size()); ++d) {
    Device& device = at(d);
    while (device.owed > 0) start_weight(d);
    cost = std::max(cost, device.clock - device.first_start);
  }
  return cost;
}

// The device is free, or something has come for it: what does it do?
void GreedyPlanner::act(int d) {
  static constexpr std::array<std::array<int, kKinds>, 2> kOrders{
      {{kF1, kB1, kB0, kF0}, {kB1, kF1, kB0, kF0}}};
  take_out(d);
  Device& device = at(d);
  const double now = device.wake;
  double next = kNever;
  int next_kind = kKinds;
  bool lacks_memory = false;
  for (const int kind : kOrders[rules_.b1_before_f1 ? 1 : 0]) {
    const double arrived = device.arrival[kind];
    if (arrived == kNever || (kind <= kF1 && !fits(device, kind))) continue;
    if (arrived > now) {
      if (arrived < next) {
        next = arrived;
        next_kind = kind;
      }
      continue;
    }
    if (kind <= kF1 && device.owed > 0 && held(device) + device.activation[kind] > limit_) {
      lacks_memory = true;
      continue;
    }
    const bool warms_up = kind == kF0 && device.ran[kB0] == 0 && device.ran[kB1] == 0;
    if (warms_up && next_kind != kKinds && next - now <= rules_.patience * device.seconds[kF0]) {
      break;
    }
    wait_until(device, now);
    start(d, kind);
    return;
  }
  if (device.owed > 0 && (lacks_memory || next > now)) {
    wait_until(device, now);
    start_weight(d);
    wake_at(d, device.clock);
  } else if (next < kNever) {
    wake_at(d, next);
  }
}

// Without the W that the device owes.
bool GreedyPlanner::fits(const Device& device, int kind) const {
  const int f0 = device.ran[kF0];
  const int f1 = device.ran[kF1];
  const double held =
      (f0 - device.ran[kB0]) * device.activation[0] + (f1 - device.ran[kB1]) * device.activation[1];
  if (held + device.activation[kind] > limit_) return false;
  if (kind == kF1 || chunks_ == 1) return true;
  if (f0 > f1 && f0 - device.ran[kB0] >= device.most_f0) return false;
  return (f0 + 1 - f1) * device.activation[0] + device.activation[1] <= limit_;
}

double GreedyPlanner::held(const Device& device) const {
  double sum = 0;
  for (size_t c = 0; c < 2; ++c) {
    sum += device.ran[c] * device.activation[c] -
           device.ran[3 - c] * (device.activation[c] - device.weight_stash[c]) -
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
void GreedyPlanner::start(int d, int kind) {
  Device& device = at(d);
  const auto k = static_cast<size_t>(kind);
  const int microbatch = device.ran[k]++;
  const int chunk = kind <= kF1 ? kind : 3 - kind;
  device.clock += device.seconds[k];
  lists_[d].push_back(make_pass(kind <= kF1 ? PassKind::kF : PassKind::kB, microbatch, chunk));
  if (kind > kF1) {
    backward_chunk(d, device.next_weight + device.owed++) = static_cast<std::uint8_t>(chunk);
  }
  const Neighbour from = device.from[k];
  const int next = microbatch + 1;
  if (from.device >= 0) {
    const bool sent = at(from.device).ran[from.kind] > next;
    device.arrival[k] = sent ? arrival(d, kind, next) : kNever;
  } else if (next == microbatches_) {
    device.arrival[k] = kNever;
  }
  wake_at(d, device.clock);
  if (device.to[k].device >= 0) deliver(device.to[k], microbatch, device.clock + device.hop[k]);
}

void GreedyPlanner::deliver(const Neighbour& to, int microbatch, double time) {
  Device& device = at(to.device);
  arrival(to.device, to.kind, microbatch) = time;
  if (device.ran[to.kind] != microbatch) return;
  device.arrival[to.kind] = time;
  const double wake = std::max(time, device.clock);
  if (device.bucket >= 0 && device.wake <= wake) return;
  if (device.bucket >= 0) take_out(to.device);
  wake_at(to.device, wake);
}

void GreedyPlanner::start_weight(int d) {
  Device& device = at(d);
  const int chunk = backward_chunk(d, device.next_weight++);
  const auto c = static_cast<size_t>(chunk);
  device.clock += device.weight[c];
  --device.owed;
  lists_[d].push_back(make_pass(PassKind::kW, device.weights_ran[c]++, chunk));
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
