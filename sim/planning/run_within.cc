#include "sim/planning/run_within.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "sim/core/error.h"

namespace pipesim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// A limit that is a sum of the same bytes is kept however the sum is rounded.
constexpr double kRounding = 1 + 1e-12;

struct Chunk {
  double forward = 0, backward = 0, weight = 0;
  double activation = 0, weight_stash = 0;
  int vs = 0;
  int f = 0, b = 0, w = 0;  // passes run, each kind in order of microbatches
};

struct Device {
  const Pass* next = nullptr;  // of the order
  const Pass* end = nullptr;
  std::vector<int> overtaken;  // by kind and chunk: passes that ran before their turn
  std::vector<int> owed;       // chunks of the B run, in order
  size_t paid = 0;             // W run
  double whole = 0;            // what one microbatch keeps
  double clock = 0;
  double first_start = kNever;

  [[nodiscard]] bool owes_weight() const { return paid < owed.size(); }
};

class Runner {
 public:
  Runner(const Problem& problem, Bytes limit, const PassLists& order, const WithinRules& rules);
  WithinResult run();

 private:
  // A pass that could be next on a device.
  struct Choice {
    bool forward = true;
    int chunk = 0;
  };

  void decide(int device, double now);
  void run_later_pass(int device, double now, const Choice& expected, double gap);
  bool resolve_stall(double now);
  bool fits(int device, int chunk) const;
  void run_pass(int device, const Choice& choice, double now);
  void run_weight(int device, double now);
  void occupy(int device, double now, double seconds);
  void deliver(bool forward, int vs, int to, int microbatch, double end);

  [[nodiscard]] double arrival(int device, const Choice& choice) const;
  [[nodiscard]] double seconds(int device, const Choice& choice) const {
    const Chunk& chunk = at(device, choice.chunk);
    return choice.forward ? chunk.forward : chunk.backward;
  }
  [[nodiscard]] int number(int device, const Choice& choice) const {
    const Chunk& chunk = at(device, choice.chunk);
    return choice.forward ? chunk.f : chunk.b;
  }
  [[nodiscard]] int& overtaken(int device, const Choice& choice) {
    return devices_[device].overtaken[choice.forward ? choice.chunk : chunks_ + choice.chunk];
  }
  [[nodiscard]] Chunk& at(int device, int chunk) {
    return all_chunks_[static_cast<size_t>(device) * static_cast<size_t>(chunks_) +
                       static_cast<size_t>(chunk)];
  }
  [[nodiscard]] const Chunk& at(int device, int chunk) const {
    return const_cast<Runner*>(this)->at(device, chunk);
  }
  [[nodiscard]] size_t slot(int vs, int microbatch) const {
    return static_cast<size_t>(vs) * static_cast<size_t>(microbatches_) +
           static_cast<size_t>(microbatch);
  }

  const Problem& problem_;
  int chunks_;
  int microbatches_;
  double limit_;
  WithinRules rules_;
  std::vector<Device> devices_;
  std::vector<Chunk> all_chunks_;  // by device and chunk
  std::vector<double> input_;      // by stage and microbatch: when F can start
  std::vector<double> gradient_;   // and B
  PassLists lists_;
  size_t left_ = 0;  // passes to run
  using Event = std::pair<double, int>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

Runner::Runner(const Problem& problem, Bytes limit, const PassLists& order,
               const WithinRules& rules)
    : problem_(problem),
      chunks_(problem.shape.chunks),
      microbatches_(problem.shape.microbatches),
      limit_(limit.value() * kRounding),
      rules_(rules),
      devices_(order.size()),
      all_chunks_(order.size() * static_cast<size_t>(chunks_)),
      input_(all_chunks_.size() * static_cast<size_t>(microbatches_), kNever),
      gradient_(input_.size(), kNever),
      lists_(order.size()),
      left_(3 * input_.size()) {
  const auto per_device = static_cast<size_t>(chunks_ * microbatches_);
  for (int d = 0; d < problem.shape.devices; ++d) {
    Device& device = devices_[d];
    const auto& list = order[d];
    device.next = list.data();
    device.end = list.data() + list.size();
    device.overtaken.assign(2 * static_cast<size_t>(chunks_), 0);
    device.owed.reserve(per_device);
    lists_[d].reserve(3 * per_device);
    for (int c = 0; c < chunks_; ++c) {
      const int vs = problem.placement.virtual_stage(d, c);
      const StageCost& cost = problem.stage(vs);
      at(d, c) = {cost.forward.value(),         cost.backward_input.value(),
                  cost.backward_weight.value(), cost.activation.value(),
                  cost.weight_stash.value(),    vs};
      device.whole += cost.activation.value();
      if (problem.placement.upstream(vs) >= 0) continue;
      std::fill_n(input_.begin() + static_cast<std::ptrdiff_t>(slot(vs, 0)), microbatches_, 0.0);
    }
    events_.emplace(0, d);
  }
}

WithinResult Runner::run() {
  double now = 0;
  while (left_ > 0) {
    if (events_.empty() && !resolve_stall(now)) {
      throw LogicError("an order does not fit into the memory limit");
    }
    const auto [time, device] = events_.top();
    events_.pop();
    now = time;
    if (devices_[device].clock <= now) decide(device, now);
  }
  double cost = 0;
  for (const Device& device : devices_) cost = std::max(cost, device.clock - device.first_start);
  return {std::move(lists_), Seconds(cost)};
}

// Starts a pass on an idle device, or leaves it idle until something arrives.
void Runner::decide(int d, double now) {
  Device& device = devices_[d];
  Choice expected;
  for (; device.next != device.end; ++device.next) {
    if (device.next->kind == PassKind::kW) continue;
    expected = {device.next->kind == PassKind::kF, device.next->chunk};
    int& before = overtaken(d, expected);
    if (before == 0) break;
    --before;
  }
  if (device.next == device.end) {
    if (device.owes_weight()) run_weight(d, now);
    return;
  }
  const double start = arrival(d, expected);
  const bool room = !expected.forward || fits(d, expected.chunk);
  if (start <= now && room) {
    ++device.next;
    run_pass(d, expected, now);
    return;
  }
  const double gap = start <= now ? kNever : start - now;
  if (device.owes_weight() &&
      (!room || rules_.gap_share * at(d, device.owed[device.paid]).weight <= gap)) {
    run_weight(d, now);
    return;
  }
  if (rules_.overtake || !room) run_later_pass(d, now, expected, gap);
}

// The B of the oldest microbatch first, then an F.
void Runner::run_later_pass(int d, double now, const Choice& expected, double gap) {
  for (const bool forward : {false, true}) {
    if (forward && !rules_.hold_back) return;
    const Choice* best = nullptr;
    Choice choice{forward, 0};
    Choice found;
    for (int c = 0; c < chunks_; ++c) {
      choice.chunk = c;
      if (forward == expected.forward && c == expected.chunk) continue;
      if (number(d, choice) == microbatches_ || arrival(d, choice) > now) continue;
      if (seconds(d, choice) > gap || (forward && !fits(d, c))) continue;
      if (best != nullptr && number(d, found) <= number(d, choice)) continue;
      found = choice;
      best = &found;
    }
    if (best == nullptr) continue;
    ++overtaken(d, found);
    run_pass(d, found, now);
    return;
  }
}

// Everybody waits for what nobody runs: owed W run; if there are none, the oldest microbatch goes
// on.
bool Runner::resolve_stall(double now) {
  int oldest = microbatches_;
  int chosen = -1;
  Choice found;
  for (int d = 0; d < static_cast<int>(devices_.size()); ++d) {
    if (devices_[d].owes_weight()) {
      run_weight(d, now);
      return true;
    }
    for (const bool forward : {false, true}) {
      for (int c = 0; c < chunks_; ++c) {
        const Choice choice{forward, c};
        if (number(d, choice) >= oldest || arrival(d, choice) > now) continue;
        if (forward && !fits(d, c)) continue;
        oldest = number(d, choice);
        chosen = d;
        found = choice;
      }
    }
  }
  if (chosen < 0) return false;
  ++overtaken(chosen, found);
  run_pass(chosen, found, now);
  return true;
}

double Runner::arrival(int d, const Choice& choice) const {
  const int microbatch = number(d, choice);
  if (microbatch == microbatches_) return kNever;
  return (choice.forward ? input_ : gradient_)[slot(at(d, choice.chunk).vs, microbatch)];
}

// Whether the next F of the chunk may acquire its memory.
bool Runner::fits(int d, int chunk) const {
  double held = at(d, chunk).activation;
  int oldest = microbatches_;
  for (int c = 0; c < chunks_; ++c) {
    const Chunk& of = at(d, c);
    held +=
        of.f * of.activation - of.b * (of.activation - of.weight_stash) - of.w * of.weight_stash;
    oldest = std::min(oldest, of.w);
  }
  if (!rules_.hold_back) return held <= limit_;
  if (at(d, chunk).f == oldest) return true;
  for (int c = 0; c < chunks_; ++c) {
    const Chunk& of = at(d, c);
    if (of.f > oldest) held -= of.activation;
    if (of.b > oldest) held += of.activation - of.weight_stash;
    if (of.w > oldest) held += of.weight_stash;
  }
  return held + devices_[d].whole <= limit_;
}

void Runner::run_pass(int d, const Choice& choice, double now) {
  Chunk& chunk = at(d, choice.chunk);
  int& count = choice.forward ? chunk.f : chunk.b;
  const int microbatch = count++;
  lists_[d].push_back(
      make_pass(choice.forward ? PassKind::kF : PassKind::kB, microbatch, choice.chunk));
  occupy(d, now, seconds(d, choice));
  const double end = devices_[d].clock;
  const Placement& place = problem_.placement;
  if (!choice.forward) {
    devices_[d].owed.push_back(choice.chunk);
    deliver(false, chunk.vs, place.upstream(chunk.vs), microbatch, end);
  } else if (place.downstream(chunk.vs) >= 0) {
    deliver(true, chunk.vs, place.downstream(chunk.vs), microbatch, end);
  } else {
    gradient_[slot(chunk.vs, microbatch)] = end;
  }
}

void Runner::run_weight(int d, double now) {
  Device& device = devices_[d];
  const int c = device.owed[device.paid++];
  lists_[d].push_back(make_pass(PassKind::kW, at(d, c).w++, c));
  occupy(d, now, at(d, c).weight);
}

void Runner::occupy(int d, double now, double seconds) {
  Device& device = devices_[d];
  device.first_start = std::min(device.first_start, now);
  device.clock = now + seconds;
  --left_;
  events_.emplace(device.clock, d);
}

void Runner::deliver(bool forward, int vs, int to, int microbatch, double end) {
  if (to < 0) return;
  const double arrives = end + problem_.stage(forward ? vs : to).transfer.value();
  (forward ? input_ : gradient_)[slot(to, microbatch)] = arrives;
  const int receiver = problem_.placement.device(to);
  if (receiver != problem_.placement.device(vs)) events_.emplace(arrives, receiver);
}

}  // namespace

WithinResult run_within(const Problem& problem, Bytes limit, const PassLists& order,
                        const WithinRules& rules) {
  return Runner(problem, limit, order, rules).run();
}

}  // namespace pipesim
