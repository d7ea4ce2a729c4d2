#include "sim/planning/run_within.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <utility>

#include "sim/core/error.h"
#include "sim/core/grid.h"
#include "sim/pipeline/dependencies.h"
#include "sim/planning/room.h"

namespace pipesim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

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
  double least = 0;            // its span cannot be less: its work, and what it has idled
  double clock = 0;
  double first_start = kNever;

  [[nodiscard]] bool owes_weight() const { return paid < owed.size(); }
};

// The time when each device wakes next, and the earliest by a tournament. Ties go to either.
class Wakes {
 public:
  explicit Wakes(size_t devices)
      : leaves_(std::bit_ceil(devices)), time_(leaves_, kNever), first_(2 * leaves_) {
    for (size_t i = 0; i < leaves_; ++i) first_[leaves_ + i] = static_cast<int>(i);
    for (size_t i = leaves_ - 1; i > 0; --i) first_[i] = first_[2 * i];
  }

  [[nodiscard]] int first() const { return first_[1]; }
  [[nodiscard]] double of(int device) const { return time_[device]; }
  void set(int device, double time) {
    time_[device] = time;
    for (size_t i = (leaves_ + static_cast<size_t>(device)) / 2; i > 0; i /= 2) {
      const int a = first_[2 * i];
      const int b = first_[2 * i + 1];
      first_[i] = time_[b] < time_[a] ? b : a;
    }
  }

 private:
  size_t leaves_;
  std::vector<double> time_;
  std::vector<int> first_;  // of the leaves under a node; the root is 1
};

class Runner {
 public:
  Runner(const Problem& problem, Bytes limit, const PassLists& order, const WithinRules& rules,
         const PlanTime& most);
  WithinResult run();

 private:
  // A pass that could be next on a device.
  struct Choice {
    bool forward = true;
    int chunk = 0;
    friend bool operator==(const Choice&, const Choice&) = default;
  };

  void add_device(int device, const std::vector<Pass>& order);
  // True if it starts a pass.
  bool decide(int device, double now);
  [[nodiscard]] double next_arrival(int device, double now) const;
  std::optional<Choice> next_of_order(int device);
  [[nodiscard]] bool weight_delays_nothing(int device, double gap) const;
  [[nodiscard]] std::optional<Choice> later_pass(int device, double now, const Choice& expected,
                                                 double gap);
  void resolve_stall(double now);
  void run_early(int device, const Choice& choice, double now);
  bool fits(int device, const Choice& choice);
  bool has_room(double bytes);
  void run_pass(int device, const Choice& choice, double now);
  void run_weight(int device, double now);
  void occupy(int device, double now, double seconds);
  void deliver(const StagePass& pass, int microbatch, double end);

  [[nodiscard]] int devices() const { return static_cast<int>(devices_.size()); }
  [[nodiscard]] double arrival(int device, const Choice& choice) const;
  [[nodiscard]] double seconds(int device, const Choice& choice) const {
    const Chunk& chunk = chunk_(device, choice.chunk);
    return choice.forward ? chunk.forward : chunk.backward;
  }
  [[nodiscard]] int number(int device, const Choice& choice) const {
    const Chunk& chunk = chunk_(device, choice.chunk);
    return choice.forward ? chunk.f : chunk.b;
  }
  [[nodiscard]] int& overtaken(int device, const Choice& choice) {
    return devices_[device].overtaken[choice.forward ? choice.chunk : chunks_ + choice.chunk];
  }

  const Problem& problem_;
  int chunks_;
  int microbatches_;
  double limit_;
  WithinRules rules_;
  PlanTime most_;
  bool hopeless_ = false;
  bool met_overtake_ = false;
  double asked_ = 0, refused_ = kNever;
  std::vector<Device> devices_;
  Grid<Chunk> chunk_;      // by device and chunk
  Grid<double> input_;     // by stage and microbatch: when F can start
  Grid<double> gradient_;  // and B
  PassLists lists_;
  size_t left_ = 0;  // passes to run
  Wakes wakes_;
  double latest_ = 0;  // that anything has come to a device, or will
};

Runner::Runner(const Problem& problem, Bytes limit, const PassLists& order,
               const WithinRules& rules, const PlanTime& most)
    : problem_(problem),
      chunks_(problem.shape.chunks),
      microbatches_(problem.shape.microbatches),
      limit_(limit.value() * kRounding),
      rules_(rules),
      most_(kRounding * most),
      devices_(order.size()),
      chunk_(order.size(), chunks_),
      input_(problem.placement.virtual_stages(), microbatches_, kNever),
      gradient_(input_),
      lists_(order.size()),
      left_(3 * input_.cells().size()),
      wakes_(order.size()) {
  for (int d = 0; d < devices(); ++d) add_device(d, order[d]);
}

void Runner::add_device(int d, const std::vector<Pass>& order) {
  const Placement& place = problem_.placement;
  const int backwards = chunks_ * microbatches_;
  Device& device = devices_[d];
  device.next = order.data();
  device.end = order.data() + order.size();
  device.overtaken.assign(2 * chunks_, 0);
  device.owed.reserve(backwards);
  lists_[d].reserve(3 * backwards);
  for (int c = 0; c < place.chunks(d); ++c) {
    const int vs = place.virtual_stage(d, c);
    const StageCost& cost = problem_.stage(vs);
    chunk_(d, c) = {cost.forward.value(),         cost.backward_input.value(),
                    cost.backward_weight.value(), cost.activation.value(),
                    cost.weight_stash.value(),    vs};
    device.whole += cost.activation.value();
    device.least +=
        microbatches_ * (chunk_(d, c).forward + chunk_(d, c).backward + chunk_(d, c).weight);
    if (!source_of(place, {PassKind::kF, vs}).exists()) std::ranges::fill(input_.row(vs), 0.0);
  }
  wakes_.set(d, 0);
}

WithinResult Runner::run() {
  while (left_ > 0 && !hopeless_) {
    const int d = wakes_.first();
    const double now = wakes_.of(d);
    if (now == kNever) {
      resolve_stall(latest_);
    } else if (!decide(d, now)) {
      wakes_.set(d, next_arrival(d, now));
    }
  }
  const Bytes asked(asked_);
  const Bytes refused(refused_);
  if (hopeless_) return {{}, {}, asked, refused, met_overtake_};
  PlanTimer timer(problem_.objective);
  for (const Device& device : devices_) timer.add(device.first_start, device.clock);
  return {std::move(lists_), timer.time(), asked, refused, met_overtake_};
}

// Starts a pass on an idle device, or leaves it idle until something arrives.
bool Runner::decide(int d, double now) {
  Device& device = devices_[d];
  const auto expected = next_of_order(d);
  if (!expected) {
    if (!device.owes_weight()) return false;
    run_weight(d, now);
    return true;
  }
  const double start = arrival(d, *expected);
  const bool room = fits(d, *expected);
  if (start <= now && room) {
    ++device.next;
    run_pass(d, *expected, now);
    return true;
  }
  const double gap = start <= now ? kNever : start - now;
  if (device.owes_weight() && (!room || weight_delays_nothing(d, gap))) {
    run_weight(d, now);
    return true;
  }
  const auto later = later_pass(d, now, *expected, gap);
  met_overtake_ = met_overtake_ || (room && later);
  if (!later || (room && !rules_.overtake)) return false;
  run_early(d, *later, now);
  return true;
}

// The first arrival after `now` among a device's possible next passes.
double Runner::next_arrival(int d, double now) const {
  double next = kNever;
  for (int c = 0; c < chunks_; ++c) {
    for (const bool forward : {false, true}) {
      const double arrives = arrival(d, {forward, c});
      if (arrives > now) next = std::min(next, arrives);
    }
  }
  return next;
}

// The next F or B that has not run before its turn.
std::optional<Runner::Choice> Runner::next_of_order(int d) {
  Device& device = devices_[d];
  for (; device.next != device.end; ++device.next) {
    if (device.next->kind == PassKind::kW) continue;
    const Choice choice{device.next->kind == PassKind::kF, device.next->chunk};
    int& before = overtaken(d, choice);
    if (before == 0) return choice;
    --before;
  }
  return std::nullopt;
}

bool Runner::weight_delays_nothing(int d, double gap) const {
  const Device& device = devices_[d];
  return chunk_(d, device.owed[device.paid]).weight <= gap;
}

// The B of the oldest microbatch first, then an F.
std::optional<Runner::Choice> Runner::later_pass(int d, double now, const Choice& expected,
                                                 double gap) {
  for (const bool forward : {false, true}) {
    if (forward && !rules_.hold_back) return std::nullopt;
    std::optional<Choice> oldest;
    for (int c = 0; c < problem_.placement.chunks(d); ++c) {
      const Choice choice{forward, c};
      if (choice == expected || arrival(d, choice) > now) continue;
      if (seconds(d, choice) > gap || !fits(d, choice)) continue;
      if (!oldest || number(d, choice) < number(d, *oldest)) oldest = choice;
    }
    if (oldest) return oldest;
  }
  return std::nullopt;
}

// Everybody waits for what nobody runs: an owed W runs; if there is none, the oldest microbatch
// goes on.
void Runner::resolve_stall(double now) {
  for (int d = 0; d < devices(); ++d) {
    if (!devices_[d].owes_weight()) continue;
    run_weight(d, now);
    return;
  }
  int oldest = microbatches_;
  int chosen = -1;
  Choice found;
  for (int d = 0; d < devices(); ++d) {
    const int chunks = problem_.placement.chunks(d);
    for (int i = 0; i < 2 * chunks; ++i) {
      const Choice choice{i >= chunks, i % chunks};
      if (number(d, choice) >= oldest || arrival(d, choice) > now || !fits(d, choice)) continue;
      oldest = number(d, choice);
      chosen = d;
      found = choice;
    }
  }
  if (chosen < 0) throw LogicError("an order does not fit into the memory limit");
  run_early(chosen, found, now);
}

void Runner::run_early(int d, const Choice& choice, double now) {
  ++overtaken(d, choice);
  run_pass(d, choice, now);
}

double Runner::arrival(int d, const Choice& choice) const {
  const int microbatch = number(d, choice);
  if (microbatch == microbatches_) return kNever;
  return (choice.forward ? input_ : gradient_)(chunk_(d, choice.chunk).vs, microbatch);
}

// True if an F may acquire its memory.
bool Runner::fits(int d, const Choice& choice) {
  if (!choice.forward) return true;
  const auto chunks = chunk_.row(d);
  double held = chunks[choice.chunk].activation;
  int oldest = microbatches_;
  for (const Chunk& of : chunks) {
    held +=
        of.f * of.activation - of.b * (of.activation - of.weight_stash) - of.w * of.weight_stash;
    oldest = std::min(oldest, of.w);
  }
  if (!rules_.hold_back) return has_room(held);
  if (chunks[choice.chunk].f == oldest) return true;
  for (const Chunk& of : chunks) {
    if (of.f > oldest) held -= of.activation;
    if (of.b > oldest) held += of.activation - of.weight_stash;
    if (of.w > oldest) held += of.weight_stash;
  }
  return has_room(held + devices_[d].whole);
}

bool Runner::has_room(double bytes) {
  if (bytes > limit_) {
    refused_ = std::min(refused_, bytes);
    return false;
  }
  asked_ = std::max(asked_, bytes);
  return true;
}

void Runner::run_pass(int d, const Choice& choice, double now) {
  Chunk& chunk = chunk_(d, choice.chunk);
  const PassKind kind = choice.forward ? PassKind::kF : PassKind::kB;
  const int microbatch = choice.forward ? chunk.f++ : chunk.b++;
  lists_[d].push_back(make_pass(kind, microbatch, choice.chunk));
  occupy(d, now, seconds(d, choice));
  if (!choice.forward) devices_[d].owed.push_back(choice.chunk);
  deliver({kind, chunk.vs}, microbatch, devices_[d].clock);
}

void Runner::run_weight(int d, double now) {
  Device& device = devices_[d];
  const int c = device.owed[device.paid++];
  lists_[d].push_back(make_pass(PassKind::kW, chunk_(d, c).w++, c));
  occupy(d, now, chunk_(d, c).weight);
}

void Runner::occupy(int d, double now, double seconds) {
  Device& device = devices_[d];
  if (device.first_start < kNever) device.least += now - device.clock;
  hopeless_ = hopeless_ || PlanTime{device.least} > most_;
  device.first_start = std::min(device.first_start, now);
  device.clock = now + seconds;
  --left_;
  latest_ = std::max(latest_, device.clock);
  wakes_.set(d, device.clock);
}

void Runner::deliver(const StagePass& pass, int microbatch, double end) {
  const StagePass target = target_of(problem_.placement, pass);
  if (!target.exists()) return;
  const double arrives = end + problem_.transfer(pass.vs, target.vs).value();
  (target.kind == PassKind::kF ? input_ : gradient_)(target.vs, microbatch) = arrives;
  const int receiver = problem_.placement.device(target.vs);
  if (receiver == problem_.placement.device(pass.vs)) return;
  latest_ = std::max(latest_, arrives);
  const double wake = std::max(arrives, devices_[receiver].clock);
  if (wake < wakes_.of(receiver)) wakes_.set(receiver, wake);
}

}  // namespace

WithinResult run_within(const Problem& problem, Bytes limit, const PassLists& order,
                        const WithinRules& rules, const PlanTime& most) {
  return Runner(problem, limit, order, rules, most).run();
}

}  // namespace pipesim
