#include "schedules/zb_planner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "schedules/order_within.h"
#include "sim/planning/device_bound.h"
#include "sim/planning/memory_ladder.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Times within this factor of the lower bound count as equal to it.
constexpr double kNear = 1 + 1e-9;

// Runs for messages in steps that take so many times what the best takes are given up: none of
// sweep_10k was seen to be the best with the messages as they are.
constexpr double kHope = 1.05;

}  // namespace

ZbPlanner::ZbPlanner(const Problem& problem)
    : problem_(problem),
      last_(problem.shape.devices - 1),
      microbatches_(problem.shape.microbatches),
      devices_(problem.shape.devices),
      warm_up_(devices_.size()),
      forward_end_(devices_.size(), microbatches_),
      lists_(devices_.size()),
      best_(devices_.size()) {
  for (int d = 0; d <= last_; ++d) {
    const StageCost& cost = problem.stage(d);
    Device& device = at(d);
    device.forward = ticks(cost.forward);
    device.backward = ticks(cost.backward_input);
    device.weight = ticks(cost.backward_weight);
    device.activation = cost.activation.value();
    device.weight_stash = cost.weight_stash.value();
  }
  for (PassLists* lists : {&lists_, &best_}) {
    for (auto& list : *lists) list.reserve(3 * microbatches_);
  }
  set_messages(problem);
}

void ZbPlanner::set_messages(const Problem& problem) {
  for (int d = 0; d <= last_; ++d) {
    at(d).to_downstream = ticks(problem.stage(d).transfer);
    if (d > 0) at(d).to_upstream = at(d - 1).to_downstream;
  }
  double way = 0;
  for (Device& device : devices_) {
    device.work = microbatches_ * (device.forward + device.backward + device.weight);
    if (problem_.objective != Objective::kMakespan) continue;
    device.way = way;
    way += device.forward + device.to_downstream;
  }
}

// With every choice of the paper for what follows the warm-up, in its order.
ZbPlanner::Choices ZbPlanner::published_choices(double patience) {
  return {{.patience = patience},
          {{true, true}, {true, false}, {false, true}, {false, false}},
          std::vector<double>(4, kNever)};
}

// Where memory is plenty, gaps before the first B are all that is left: a patience between the
// paper's extremes lets some of them go.
std::vector<ZbPlanner::Choices> ZbPlanner::all_choices() {
  std::vector<Choices> choices;
  for (const double patience : {1.0, 0.0, 0.6, 0.3, 0.15}) {
    choices.push_back(published_choices(patience));
  }
  const Steady greedy{false, true};
  const Steady waiting{false, false};
  choices.push_back({{.ahead = 1}, {greedy, waiting, {.owed = 1}, {.owed = 0}}, {}});  // H1, 1F1B
  choices.push_back({{.ahead = 2}, {greedy, waiting, {.owed = 2}}, {}});               // H2
  for (Choices& each : choices) each.asked.assign(each.steady.size(), kNever);
  return choices;
}

PassLists ZbPlanner::published(Bytes limit) {
  all_ = {published_choices(1), published_choices(0)};
  try_all(limit);
  return std::move(best_);
}

PassLists ZbPlanner::best(Bytes limit) {
  try_limits(limit);
  if (size_of(problem_) != ProblemSize::kLarge) {
    as_they_are_.emplace(problem_);
    for (const Problem& longer : with_longer_messages(problem_, most_steps(problem_))) {
      set_messages(longer);
      try_limits(limit);
    }
  }
  return std::move(best_);
}

void ZbPlanner::try_limits(Bytes limit) {
  all_ = all_choices();
  const Bytes least = for_planning(problem_).device_activation();
  if (size_of(problem_) != ProblemSize::kLarge) {
    Bytes within = limit;
    while (within >= least) within = (1 - 1e-9) * try_all(within);
    return;
  }
  try_all(limit);
  for (const Bytes rung : rungs_below(problem_, limit)) {
    if (rung >= least) try_all(rung);
  }
}

// Returns the most that some run asked for, or nothing where none within less can be better: from
// there on up to the limit all runs would be the same.
Bytes ZbPlanner::try_all(Bytes limit) {
  limit_ = limit.value() * kRounding;
  const PlanTime bound = kNear * 1e12 * least_plan_time(problem_, limit);
  double most_asked = 0;
  std::vector<std::vector<int>> tried;
  for (Choices& choices : all_) {
    if (least_.reaches(bound)) return Bytes(0);
    asked_ = 0;
    count_warm_up(choices.warm_up);
    const double asked_by_warm_up = asked_;
    most_asked = std::max(most_asked, asked_by_warm_up);
    const bool known = std::ranges::find(tried, warm_up_) != tried.end();
    if (!known) tried.push_back(warm_up_);
    std::vector<bool> same(choices.steady.size(), false);  // as a run before
    for (size_t i = 0; i < choices.steady.size(); ++i) {
      if (same[i] || (known && choices.steady[i].owed < 0)) continue;
      if (choices.asked[i] <= limit_) {
        most_asked = std::max(most_asked, choices.asked[i]);
        continue;
      }
      asked_ = asked_by_warm_up;
      const PlanTime time = run(choices.steady[i]);
      choices.asked[i] = asked_;
      most_asked = std::max(most_asked, asked_);
      for (size_t other = i + 1; other < same.size(); ++other) {
        if (!same_with(choices.steady[other])) continue;
        same[other] = true;
        choices.asked[other] = asked_;
      }
      if (time >= least_) continue;
      least_ = time;
      std::swap(best_, lists_);
    }
  }
  return Bytes(most_asked);
}

bool ZbPlanner::same_with(const Steady& others) const {
  return others.owed < 0 && steady_.owed < 0 &&
         (others.skip_forwards == steady_.skip_forwards || !met_skip_) &&
         (others.fill_every_gap == steady_.fill_every_gap || !met_fill_);
}

// Gives up, and returns infinity, when that is no better than the best.
[[gnu::flatten]] PlanTime ZbPlanner::run(const Steady& steady) {
  steady_ = steady;
  start();
  for (int d = 0; d <= last_; ++d) {
    while (at(d).f < warm_up_[d]) run_forward(d);
  }
  run_backwards();
  for (int b = 1; b < microbatches_ && !hopeless_; ++b) {
    run_forwards();
    run_backwards();
  }
  PlanTimer timer(problem_.objective);
  for (int d = 0; d <= last_ && !hopeless_; ++d) {
    while (at(d).owes_weight()) run_weight(d);
    timer.add(at(d).first_start, at(d).clock);
  }
  if (hopeless_) return {};
  return as_they_are_ ? as_they_are_->time(lists_) : timer.time();
}

// One F everywhere.
void ZbPlanner::start() {
  for (Device& device : devices_) device.reset();
  for (auto& list : lists_) list.clear();
  most_idle_ = 0;
  most_ = as_they_are_ ? kHope * least_ : least_;
  takes_time_ = takes_span_ = hopeless_ = false;
  met_skip_ = met_fill_ = false;
  for (int d = 0; d <= last_; ++d) run_forward(d);
}

void ZbPlanner::count_warm_up(const WarmUp& choice) {
  start();
  warm_up_.back() = 1;
  double arrival = at(last_).clock + at(last_).backward + at(last_).to_upstream;
  for (int d = last_ - 1; d >= 0; --d) {
    const Device& device = at(d);
    const int forwards = count_forwards(d, arrival, choice);
    warm_up_[d] = forwards;
    const double clock = device.clock + (forwards - 1) * device.forward;
    arrival = std::max(clock, arrival) + device.backward + device.to_upstream;
  }
  // Each device stays one F ahead of the next, as long as there are microbatches to be ahead by.
  for (size_t d = 1; d < warm_up_.size(); ++d) {
    const int upstream = warm_up_[d - 1];
    if (warm_up_[d] == microbatches_ && upstream == microbatches_) continue;
    warm_up_[d] = std::min(warm_up_[d], std::max(1, upstream - 1));
  }
}

// How many F the device runs before its first B, which can start at `arrival`.
int ZbPlanner::count_forwards(int d, double arrival, const WarmUp& choice) {
  const Device& device = at(d);
  const int most =
      choice.ahead == 0 ? microbatches_ : std::min(choice.ahead * (last_ - d) + 1, microbatches_);
  double clock = device.clock;
  int forwards = 1;
  while (forwards < most && fits((forwards + 1) * device.activation + device.growth())) {
    const bool late = clock >= arrival || arrival - clock < choice.patience * device.forward;
    if (choice.ahead == 0 && late) break;
    clock += device.forward;
    ++forwards;
  }
  return forwards;
}

bool ZbPlanner::fits(double bytes) {
  if (bytes > limit_) return false;
  asked_ = std::max(asked_, bytes);
  return true;
}

// One F on every device that wants it and whose downstream devices all do.
void ZbPlanner::run_forwards() {
  int first = last_ + 1;
  while (first > 0 && wants_forward(first - 1)) --first;
  for (int d = first; d <= last_; ++d) {
    while (at(d).owes_weight() && !fits(at(d).held() + at(d).activation)) run_weight(d);
    if (d > 0) fill_gap(d, forward_arrival(d));
    run_forward(d);
  }
}

void ZbPlanner::run_backwards() {
  for (int d = last_; d >= 0; --d) {
    if (d < last_) fill_gap(d, backward_arrival(d));
    // Nobody waits for the first device's B: its W can as well all go first.
    const bool weights_first = d == 0 && steady_.owed < 0 && at(d).f == microbatches_;
    while (at(d).owes_weight() && (weights_first || !fits(at(d).held() + at(d).growth()))) {
      run_weight(d);
    }
    run_backward(d);
    if (steady_.owed >= 0 && at(d).b - at(d).w > steady_.owed * d) run_weight(d);
  }
}

bool ZbPlanner::wants_forward(int d) {
  const Device& device = at(d);
  if (device.f == microbatches_) return false;
  if (d == last_ || device.f < at(d + 1).f + 2) return true;
  const bool skips = steady_.skip_forwards && delays_backward(d);
  met_skip_ = met_skip_ || skips || !steady_.skip_forwards;
  return !skips;
}

// True if an F now would keep a device that is two ahead of the next from a B that it could afford
// to wait for.
bool ZbPlanner::delays_backward(int d) {
  const Device& device = at(d);
  const Device& next = at(d + 1);
  const double arrival = next.clock + next.forward + next.backward + device.to_downstream;
  if (device.clock >= arrival) return true;
  if (device.clock + device.forward + weights_before_forward(device) <= arrival) return false;
  return arrival - device.clock <= most_idle_ - device.idle;
}

// The time of the W passes that have to make room for an F.
double ZbPlanner::weights_before_forward(const Device& device) {
  const double held = device.held() + device.activation;
  if (fits(held)) return 0;
  const double owed = device.b - device.w;
  if (device.weight_stash <= 0) return owed * device.weight;
  const double needed = std::ceil((held - limit_) / device.weight_stash);
  if (needed >= owed) return owed * device.weight;
  asked_ = std::max(asked_, held - needed * device.weight_stash);
  return needed * device.weight;
}

double ZbPlanner::forward_arrival(int d) const {
  if (d == 0) return kNoWait;
  return forward_end_(d - 1, at(d).f) + at(d).to_upstream;
}

// The downstream device has run this B last.
double ZbPlanner::backward_arrival(int d) const {
  return d == last_ ? kNoWait : at(d + 1).backward_end + at(d).to_downstream;
}

// Runs owed W while the device would wait for `arrival`. One that would end after it, and so delay
// the pass that waits, runs if idling instead would make this the device that idles most.
void ZbPlanner::fill_gap(int d, double arrival) {
  if (steady_.owed >= 0) return;
  const Device& device = at(d);
  while (device.owes_weight() && device.clock + device.weight <= arrival) run_weight(d);
  if (!device.owes_weight() || device.clock >= arrival) return;
  const bool idles_most = arrival - device.clock > most_idle_ - device.idle;
  met_fill_ = met_fill_ || !idles_most;
  if (idles_most || steady_.fill_every_gap) run_weight(d);
}

void ZbPlanner::run_forward(int d) {
  Device& device = at(d);
  append(d, PassKind::kF, device.f, forward_arrival(d), device.forward);
  forward_end_(d, device.f++) = device.clock;
}

void ZbPlanner::run_backward(int d) {
  append(d, PassKind::kB, at(d).b++, backward_arrival(d), at(d).backward);
  at(d).backward_end = at(d).clock;
}

void ZbPlanner::run_weight(int d) { append(d, PassKind::kW, at(d).w++, kNoWait, at(d).weight); }

void ZbPlanner::append(int d, PassKind kind, int microbatch, double arrival, double seconds) {
  Device& device = at(d);
  const double start = std::max(device.clock, arrival);
  if (device.f == 0) device.first_start = start;
  if (device.f > 0) device.idle += start - device.clock;
  most_idle_ = std::max(most_idle_, device.idle);
  const double span = device.work + device.idle;
  takes_span_ = takes_span_ || span >= most_.span;
  takes_time_ = takes_time_ || device.way + span >= most_.time;
  hopeless_ = hopeless_ || device.way + span > most_.time || (takes_time_ && takes_span_);
  device.clock = start + seconds;
  lists_[d].push_back(make_pass(kind, microbatch));
}

}  // namespace pipesim
