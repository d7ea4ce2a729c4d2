// Zero Bubble's automatic schedule (Qi et al., arXiv 2401.10241, section 3.1): the first best of
// eight runs of a greedy heuristic within a limit on activation memory, and of twelve more between
// the paper's extremes of `patience` where memory is plenty. `zb-1p` and `zb-2p` allow what p and
// 2p microbatches keep, 1F1B's memory and twice that; `zb` takes the limit from the problem.
//
// Warm-up: as many F as fit in memory and before the first B. Then one F and one B in turn, where a
// W fills what its device would wait, or gives back the memory that an F needs. O(p m) per run,
// whatever each stage costs.
//
// Every run ends in a program that can be executed and keeps the limit:
//   - no device ever runs more F than the one upstream, and each has run F i before B i is due;
//   - a device never has more microbatches between F and B than at the end of its warm-up, so that
//     there is room for one more F as soon as the owed W have run.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sim/pipeline/schedule.h"

namespace pipesim {
namespace {

constexpr double kNoWait = std::numeric_limits<double>::lowest();  // what nobody sends

// What p microbatches keep fits into a limit of p times that, however the sum is rounded.
constexpr double kRounding = 1 + 1e-12;

// Whole picoseconds: the sums of unlike passes then tie exactly where the times as written do.
double ticks(Seconds seconds) { return std::round(seconds.value() * 1e12); }

// The paper's hyperparameters, which the runs try in turn.
struct Choices {
  double patience;      // of an F: a gap before the first B up to which none fills it
  bool skip_forwards;   // a device two F ahead of the next may skip one that would delay a B
  bool fill_every_gap;  // a W that delays the next pass even where another device idles more
};

// One device: what its passes cost, and how far it has come.
struct Device {
  double forward = 0, backward = 0, weight = 0;
  double to_upstream = 0, to_downstream = 0;
  double activation = 0, weight_stash = 0;

  int f = 0, b = 0, w = 0;  // passes run, each kind in order of microbatches
  double clock = 0;
  double idle = 0;  // since the first F
  double first_start = 0;

  void reset() {
    f = b = w = 0;
    clock = idle = first_start = 0;
  }
  [[nodiscard]] bool owes_weight() const { return w < b; }
  // From the counts, so that rounding does not pile up.
  [[nodiscard]] double held() const {
    return f * activation - b * (activation - weight_stash) - w * weight_stash;
  }
};

class Planner {
 public:
  Planner(const Problem& problem, Bytes limit);
  Program best();

 private:
  double run();
  void count_warm_up();
  void warm_up();
  void run_forwards();
  void run_backwards();

  [[nodiscard]] bool wants_forward(int device) const;
  [[nodiscard]] double weights_before_forward(const Device& device) const;
  [[nodiscard]] double forward_arrival(int device) const;
  [[nodiscard]] double backward_arrival(int device) const;
  void fill_gap(int device, double arrival);

  void run_forward(int device);
  void run_backward(int device);
  void run_weight(int device);
  void append(int device, PassKind kind, int microbatch, double arrival, double seconds);

  [[nodiscard]] Device& at(int d) { return devices_[static_cast<size_t>(d)]; }
  [[nodiscard]] const Device& at(int d) const { return devices_[static_cast<size_t>(d)]; }
  [[nodiscard]] size_t slot(int device, int microbatch) const {
    return static_cast<size_t>(device) * static_cast<size_t>(microbatches_) +
           static_cast<size_t>(microbatch);
  }

  const Problem& problem_;
  int last_;  // device
  int microbatches_;
  double limit_;
  Choices choices_{};
  std::vector<Device> devices_;
  std::vector<int> warm_up_;         // forwards before the first B, by device
  std::vector<double> forward_end_;  // by device and microbatch
  double most_idle_ = 0;             // of all devices
  PassLists lists_;
};

Planner::Planner(const Problem& problem, Bytes limit)
    : problem_(problem),
      last_(problem.shape.devices - 1),
      microbatches_(problem.shape.microbatches),
      limit_(limit.value() * kRounding),
      devices_(static_cast<size_t>(problem.shape.devices)),
      warm_up_(devices_.size()),
      forward_end_(devices_.size() * static_cast<size_t>(microbatches_)),
      lists_(devices_.size()) {
  for (int d = 0; d <= last_; ++d) {
    const StageCost& cost = problem.stage(d);
    Device& device = at(d);
    device.forward = ticks(cost.forward);
    device.backward = ticks(cost.backward_input);
    device.weight = ticks(cost.backward_weight);
    device.to_downstream = ticks(cost.transfer);
    if (d > 0) device.to_upstream = at(d - 1).to_downstream;
    device.activation = cost.activation.value();
    device.weight_stash = cost.weight_stash.value();
  }
}

Program Planner::best() {
  PassLists best(lists_.size());
  for (PassLists* lists : {&lists_, &best}) {
    for (auto& list : *lists) list.reserve(3 * static_cast<size_t>(microbatches_));
  }
  double least = std::numeric_limits<double>::infinity();
  double least_idle = least;
  const auto try_patience = [&](double patience) {
    for (const bool skip : {true, false}) {
      for (const bool fill : {true, false}) {
        choices_ = {patience, skip, fill};
        const double cost = run();
        if (cost >= least) continue;
        least = cost;
        least_idle = most_idle_;
        std::swap(best, lists_);
      }
    }
  };
  try_patience(1);
  try_patience(0);
  // Where memory is plenty, gaps before the first B are all that is left: some of them can go.
  if (least_idle > 0 && least_idle < at(0).forward + at(0).weight) {
    for (const double patience : {0.6, 0.3, 0.15}) try_patience(patience);
  }
  return {problem_.shape, problem_.placement, std::move(best)};
}

// Returns the longest span of a device.
double Planner::run() {
  for (Device& device : devices_) device.reset();
  for (auto& list : lists_) list.clear();
  most_idle_ = 0;
  warm_up();
  run_backwards();
  for (int b = 1; b < microbatches_; ++b) {
    run_forwards();
    run_backwards();
  }
  double cost = 0;
  for (int d = 0; d <= last_; ++d) {
    while (at(d).owes_weight()) run_weight(d);
    cost = std::max(cost, at(d).clock - at(d).first_start);
  }
  return cost;
}

void Planner::warm_up() {
  for (int d = 0; d <= last_; ++d) run_forward(d);
  count_warm_up();
  for (int d = 0; d <= last_; ++d) {
    while (at(d).f < warm_up_[static_cast<size_t>(d)]) run_forward(d);
  }
}

// After one F everywhere: how many F each device can run before its first B comes back.
void Planner::count_warm_up() {
  warm_up_.back() = 1;
  double arrival = at(last_).clock + at(last_).backward + at(last_).to_upstream;
  for (int d = last_ - 1; d >= 0; --d) {
    const Device& device = at(d);
    double clock = device.clock;
    int forwards = 1;
    while (forwards < microbatches_ && (forwards + 1) * device.activation <= limit_) {
      const double next = clock + device.forward;
      if (clock >= arrival || arrival - clock < choices_.patience * device.forward) break;
      clock = next;
      ++forwards;
    }
    warm_up_[static_cast<size_t>(d)] = forwards;
    arrival = std::max(clock, arrival) + device.backward + device.to_upstream;
  }
  // Each device stays one F ahead of the next, as long as there are microbatches to be ahead by.
  for (size_t d = 1; d < warm_up_.size(); ++d) {
    const int upstream = warm_up_[d - 1];
    if (warm_up_[d] == microbatches_ && upstream == microbatches_) continue;
    warm_up_[d] = std::min(warm_up_[d], std::max(1, upstream - 1));
  }
}

// One F on every device that wants it and whose downstream devices all do.
void Planner::run_forwards() {
  int first = last_ + 1;
  while (first > 0 && wants_forward(first - 1)) --first;
  for (int d = first; d <= last_; ++d) {
    while (at(d).owes_weight() && at(d).held() + at(d).activation > limit_) run_weight(d);
    if (d > 0) fill_gap(d, forward_arrival(d));
    run_forward(d);
  }
}

void Planner::run_backwards() {
  for (int d = last_; d >= 0; --d) {
    if (d < last_) fill_gap(d, backward_arrival(d));
    // Nobody waits for the first device's B: its W can as well all go first.
    while (d == 0 && at(d).f == microbatches_ && at(d).owes_weight()) run_weight(d);
    run_backward(d);
  }
}

bool Planner::wants_forward(int d) const {
  const Device& device = at(d);
  if (device.f == microbatches_) return false;
  if (!choices_.skip_forwards || d == last_ || device.f < at(d + 1).f + 2) return true;
  const Device& next = at(d + 1);
  const double arrival = next.clock + next.forward + next.backward + device.to_downstream;
  if (device.clock >= arrival) return false;
  if (device.clock + device.forward + weights_before_forward(device) <= arrival) return true;
  return arrival - device.clock > most_idle_ - device.idle;
}

// The time of the W passes that have to make room for an F.
double Planner::weights_before_forward(const Device& device) const {
  const double excess = device.held() + device.activation - limit_;
  if (excess <= 0) return 0;
  const double owed = device.b - device.w;
  const double needed = device.weight_stash > 0 ? std::ceil(excess / device.weight_stash) : owed;
  return std::min(owed, needed) * device.weight;
}

double Planner::forward_arrival(int d) const {
  if (d == 0) return kNoWait;
  return forward_end_[slot(d - 1, at(d).f)] + at(d).to_upstream;
}

// The downstream device has just run this B.
double Planner::backward_arrival(int d) const {
  return d == last_ ? kNoWait : at(d + 1).clock + at(d).to_downstream;
}

// Runs owed W while the device would wait for `arrival`. One that would end after it, and so delay
// the pass that waits, runs if idling instead would make this the device that idles most.
void Planner::fill_gap(int d, double arrival) {
  const Device& device = at(d);
  while (device.owes_weight() && device.clock + device.weight <= arrival) run_weight(d);
  if (!device.owes_weight() || device.clock >= arrival) return;
  const bool idles_most = arrival - device.clock > most_idle_ - device.idle;
  if (idles_most || choices_.fill_every_gap) run_weight(d);
}

void Planner::run_forward(int d) {
  Device& device = at(d);
  append(d, PassKind::kF, device.f, forward_arrival(d), device.forward);
  forward_end_[slot(d, device.f++)] = device.clock;
}

void Planner::run_backward(int d) {
  append(d, PassKind::kB, at(d).b++, backward_arrival(d), at(d).backward);
}

void Planner::run_weight(int d) { append(d, PassKind::kW, at(d).w++, kNoWait, at(d).weight); }

void Planner::append(int d, PassKind kind, int microbatch, double arrival, double seconds) {
  Device& device = at(d);
  const double start = std::max(device.clock, arrival);
  if (device.f == 0) device.first_start = start;
  if (device.f > 0) device.idle += start - device.clock;
  most_idle_ = std::max(most_idle_, device.idle);
  device.clock = start + seconds;
  lists_[static_cast<size_t>(d)].push_back(make_pass(kind, microbatch));
}

Bytes limit_1p(const Problem& problem) {
  return problem.shape.devices * problem.device_activation();
}
Bytes limit_2p(const Problem& problem) { return 2 * limit_1p(problem); }
Bytes limit_given(const Problem& problem) {
  return problem.activation_limit.value_or(limit_2p(problem));
}

// The three records differ in nothing but their limit, and their claims in what it lets in flight.
template <Bytes (*limit_of)(const Problem&)>
struct Within {
  static Program plan(const Problem& problem) { return Planner(problem, limit_of(problem)).best(); }

  static int in_flight(const Problem& problem, int /*device*/) {
    const double fit = limit_of(problem) / problem.device_activation() * kRounding;
    return static_cast<int>(std::min(fit, static_cast<double>(problem.shape.microbatches)));
  }

  // Of the first microbatch's way, p-1 F and p-1 B elsewhere, each further one in flight covers the
  // shorter of F and W: k = p is the paper's (p-1) (F+B-W). By experiment; nothing went below it.
  static Seconds bubble(const Problem& problem) {
    const StageCost& cost = problem.stage(0);
    const Seconds way = (problem.shape.devices - 1) * (cost.forward + cost.backward_input);
    const Seconds covered = std::min(cost.forward, cost.backward_weight);
    return std::max(Seconds(0), way - (in_flight(problem, 0) - 1) * covered);
  }

  static bool is_exact(const Problem& problem) {
    if (!uniform(problem) || !free_transfers(problem) || !b_frees_nothing(problem)) return false;
    const int p = problem.shape.devices;
    const int k = in_flight(problem, 0);
    if (k <= p) return k >= std::min(p, problem.shape.microbatches);
    const StageCost& cost = problem.stage(0);
    const bool equal = cost.forward == cost.backward_input && cost.forward == cost.backward_weight;
    return equal || (k < 2 * p && cost.forward <= cost.backward_input);
  }

  static Claims claims(std::string_view formula, std::string_view peak, std::string_view domain,
                       std::string_view gap) {
    return {.bubble = {formula, domain, gap, is_exact, bubble},
            .peak = {peak, domain, gap, is_exact, in_flight}};
  }
};

using Within1p = Within<limit_1p>;
using Within2p = Within<limit_2p>;
using WithinGiven = Within<limit_given>;

const RegisteredSchedule kZb1p{{
    .name = "zb-1p",
    .summary = "Zero Bubble's automatic schedule within 1F1B's memory",
    .source = "Zero Bubble, arXiv 2401.10241, sections 3.1 and 5",
    .plan = Within1p::plan,
    .claims = Within1p::claims("(p-1) (F+B) - (min(p, m) - 1) min(F, W)", "min(p, m)",
                               "equal stages, free transfers, B frees nothing; with m >= p and "
                               "W <= F it is ZB-H1's (p-1) (F+B-W)",
                               ""),
}};

const RegisteredSchedule kZb2p{{
    .name = "zb-2p",
    .summary = "Zero Bubble's automatic schedule within twice 1F1B's memory: hardly any bubble",
    .source = "Zero Bubble, arXiv 2401.10241, sections 3.1 and 5",
    .plan = Within2p::plan,
    .claims = Within2p::claims(
        "max(0, (p-1) (F+B) - (min(2p, m) - 1) min(F, W))", "min(2p, m)",
        "equal stages, free transfers, B frees nothing; F = B = W, or m <= p, or m < 2p and F <= B",
        "from m = 2p on, with unequal times, both are bounds that the heuristic can miss: the "
        "bubble by up to two passes, the peak where memory is not what it lacks"),
}};

const RegisteredSchedule kZb{{
    .name = "zb",
    .summary = "Zero Bubble's automatic schedule within memory_limit; without one as zb-2p",
    .source = "Zero Bubble, arXiv 2401.10241, section 3.1",
    .memory_limit = true,
    .plan = WithinGiven::plan,
    .claims = WithinGiven::claims(
        "max(0, (p-1) (F+B) - (k-1) min(F, W)) with k = min(limit, m) microbatches in flight",
        "min(limit, m)",
        "equal stages, free transfers, B frees nothing, k >= min(p, m); F = B = W, or k <= p, or "
        "k < 2p and F <= B",
        "as for zb-2p: from k = 2p on, with unequal times, both are bounds"),
}};

}  // namespace
}  // namespace pipesim
