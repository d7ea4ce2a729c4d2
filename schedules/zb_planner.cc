#include "schedules/zb_planner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "schedules/order_within.h"
#include "sim/planning/memory_ladder.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

constexpr Bytes kNever(std::numeric_limits<double>::infinity());

// Runs for messages in steps that take so many times what the best takes are given up: none of
// sweep_10k was seen to be the best with the messages as they are.
constexpr double kHope = 1.05;

// Bytes that B acquires where W needs more than F left.
double growth(const Player::Chunk& chunk) {
  return std::max(0.0, chunk.weight_stash - chunk.activation);
}

}  // namespace

ZbPlanner::ZbPlanner(const Problem& problem)
    : problem_(problem),
      last_(problem.shape.devices - 1),
      microbatches_(problem.shape.microbatches),
      player_(problem, ticks),
      warm_up_(problem.shape.devices),
      best_(problem.shape.devices) {
  for (auto& list : best_) list.reserve(3 * microbatches_);
}

// With every choice of the paper for what follows the warm-up, in its order.
ZbPlanner::Choices ZbPlanner::published_choices(double patience) {
  return {{.patience = patience},
          {{true, true}, {true, false}, {false, true}, {false, false}},
          std::vector<Bytes>(4, kNever)};
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
      player_.set_messages(longer);
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
  const PlanTime bound = optimal_time(problem_, limit);
  Bytes most_asked;
  std::vector<std::vector<int>> tried;
  for (Choices& choices : all_) {
    if (least_.reaches(bound)) return Bytes(0);
    room_.set_limit(limit);
    count_warm_up(choices.warm_up);
    const Bytes asked_by_warm_up = room_.asked();
    most_asked = std::max(most_asked, asked_by_warm_up);
    const bool known = std::ranges::find(tried, warm_up_) != tried.end();
    if (!known) tried.push_back(warm_up_);
    std::vector<bool> same(choices.steady.size(), false);  // as a run before
    for (size_t i = 0; i < choices.steady.size(); ++i) {
      if (same[i] || (known && choices.steady[i].owed < 0)) continue;
      if (choices.asked[i] <= kRounding * limit) {
        most_asked = std::max(most_asked, choices.asked[i]);
        continue;
      }
      room_.set_limit(limit);
      room_.take(asked_by_warm_up.value());
      const PlanTime time = run(choices.steady[i]);
      choices.asked[i] = room_.asked();
      most_asked = std::max(most_asked, room_.asked());
      for (size_t other = i + 1; other < same.size(); ++other) {
        if (!same_with(choices.steady[other])) continue;
        same[other] = true;
        choices.asked[other] = room_.asked();
      }
      if (time >= least_) continue;
      least_ = time;
      std::swap(best_, player_.lists());
    }
  }
  return most_asked;
}

bool ZbPlanner::same_with(const Steady& others) const {
  return others.owed < 0 && steady_.owed < 0 &&
         (others.skip_forwards == steady_.skip_forwards || !met_skip_) &&
         (others.fill_every_gap == steady_.fill_every_gap || !met_fill_);
}

// Gives up, and returns infinity, when that is no better than the best.
[[gnu::flatten]] PlanTime ZbPlanner::run(const Steady& steady) {
  steady_ = steady;
  met_skip_ = met_fill_ = false;
  const PlanTime most = as_they_are_ ? kHope * least_ : least_;
  start();
  for (int d = 0; d <= last_; ++d) {
    while (at(d).f < warm_up_[d]) player_.run_forward(at(d));
  }
  run_backwards();
  for (int b = 1; b < microbatches_; ++b) {
    if (player_.least_time() >= most) return {};
    run_forwards();
    run_backwards();
  }
  const PlanTime time = player_.finish();
  if (time >= most) return {};
  return as_they_are_ ? as_they_are_->time(player_.lists()) : time;
}

// One F everywhere.
void ZbPlanner::start() {
  player_.reset();
  for (int d = 0; d <= last_; ++d) player_.run_forward(at(d));
}

void ZbPlanner::count_warm_up(const WarmUp& choice) {
  start();
  warm_up_.back() = 1;
  double arrival = clock(last_) + at(last_).backward + at(last_).to_upstream;
  for (int d = last_ - 1; d >= 0; --d) {
    const Player::Chunk& chunk = at(d);
    const int forwards = count_forwards(d, arrival, choice);
    warm_up_[d] = forwards;
    const double end = clock(d) + (forwards - 1) * chunk.forward;
    arrival = std::max(end, arrival) + chunk.backward + chunk.to_upstream;
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
  const Player::Chunk& chunk = at(d);
  const int most =
      choice.ahead == 0 ? microbatches_ : std::min(choice.ahead * (last_ - d) + 1, microbatches_);
  double end = clock(d);
  int forwards = 1;
  while (forwards < most && room_.fits((forwards + 1) * chunk.activation + growth(chunk))) {
    const bool late = end >= arrival || arrival - end < choice.patience * chunk.forward;
    if (choice.ahead == 0 && late) break;
    end += chunk.forward;
    ++forwards;
  }
  return forwards;
}

// One F on every device that wants it and whose downstream devices all do.
void ZbPlanner::run_forwards() {
  int first = last_ + 1;
  while (first > 0 && wants_forward(first - 1)) --first;
  for (int d = first; d <= last_; ++d) {
    while (owes_weight(d) && !room_.fits(at(d).held() + at(d).activation)) player_.run_weight(d);
    if (d > 0) fill_gap(d, player_.forward_arrival(at(d)));
    player_.run_forward(at(d));
  }
}

void ZbPlanner::run_backwards() {
  for (int d = last_; d >= 0; --d) {
    Player::Chunk& chunk = at(d);
    if (d < last_) fill_gap(d, player_.backward_arrival(chunk));
    // Nobody waits for the first device's B: its W can as well all go first.
    const bool weights_first = d == 0 && steady_.owed < 0 && chunk.f == microbatches_;
    while (owes_weight(d) && (weights_first || !room_.fits(chunk.held() + growth(chunk)))) {
      player_.run_weight(d);
    }
    player_.run_backward(chunk);
    if (steady_.owed >= 0 && chunk.b - chunk.w > steady_.owed * d) player_.run_weight(d);
  }
}

bool ZbPlanner::wants_forward(int d) {
  const Player::Chunk& chunk = at(d);
  if (chunk.f == microbatches_) return false;
  if (d == last_ || chunk.f < at(d + 1).f + 2) return true;
  const bool skips = steady_.skip_forwards && delays_backward(d);
  met_skip_ = met_skip_ || skips || !steady_.skip_forwards;
  return !skips;
}

// True if an F now would keep a device that is two ahead of the next from a B that it could afford
// to wait for.
bool ZbPlanner::delays_backward(int d) {
  const Player::Chunk& next = at(d + 1);
  const double arrival = clock(d + 1) + next.forward + next.backward + next.to_upstream;
  if (clock(d) >= arrival) return true;
  if (clock(d) + at(d).forward + weights_before_forward(d) <= arrival) return false;
  return arrival - clock(d) <= bearable(d);
}

// The time of the W passes that have to make room for an F.
double ZbPlanner::weights_before_forward(int d) {
  const Player::Chunk& chunk = at(d);
  const double held = chunk.held() + chunk.activation;
  if (room_.fits(held)) return 0;
  const double owed = chunk.b - chunk.w;
  if (chunk.weight_stash <= 0) return owed * chunk.weight;
  const double needed = std::ceil((held - room_.limit()) / chunk.weight_stash);
  if (needed >= owed) return owed * chunk.weight;
  room_.take(held - needed * chunk.weight_stash);
  return needed * chunk.weight;
}

// Runs owed W while the device would wait for `arrival`. One that would end after it, and so delay
// the pass that waits, runs if idling instead would make this the device that idles most.
void ZbPlanner::fill_gap(int d, double arrival) {
  if (steady_.owed >= 0) return;
  while (owes_weight(d) && clock(d) + at(d).weight <= arrival) player_.run_weight(d);
  if (!owes_weight(d) || clock(d) >= arrival) return;
  const bool idles_most = arrival - clock(d) > bearable(d);
  met_fill_ = met_fill_ || !idles_most;
  if (idles_most || steady_.fill_every_gap) player_.run_weight(d);
}

}  // namespace pipesim
