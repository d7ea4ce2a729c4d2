#include "sim/execution/link_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <tuple>

namespace pipesim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double late(double seconds) { return seconds * (1 + kTimeSlack); }

// The copies since the link was last idle; on top, the one whose activation lives shortest.
struct Shortest : std::priority_queue<std::pair<double, size_t>,
                                      std::vector<std::pair<double, size_t>>, std::greater<>> {
  void clear() { c.clear(); }  // keeps its room
};

// How long a copy may wait for its link.
double patience(const Candidate& each, double wait) {
  return wait == kNever ? kNever : wait * (each.lifespan() - each.out - each.back);
}

// Peak of a device with these changes by its passes, and activations that leave and return.
double peak_of_device(const std::vector<HeldChange>& held, const std::vector<HeldChange>& gone,
                      const std::vector<HeldChange>& returned) {
  double now = 0;
  double peak = 0;
  size_t out = 0;
  size_t in = 0;
  // Releases of one moment come first, and those that a forward waits for.
  const auto until = [&](double seconds, bool acquires) {
    for (;;) {
      const double next = in < returned.size() ? returned[in].seconds : kNever;
      if (out < gone.size() && gone[out].seconds <= std::min(next, late(seconds))) {
        now -= gone[out++].bytes;
      } else if (acquires ? late(next) <= seconds : late(next) < seconds) {
        peak = std::max(peak, now += returned[in++].bytes);
      } else {
        return;
      }
    }
  };
  for (const HeldChange& change : held) {
    until(change.seconds, change.bytes > 0);
    peak = std::max(peak, now += change.bytes);
  }
  return peak;
}

// A lower bound on a device's peak. `out` has ends of copies out, `back` starts of copies back, the
// last first; at most `largest` bytes go with each. Away are at most as many as have left, and as
// are still to come back.
double least_of_device(const std::vector<HeldChange>& held, const std::vector<double>& out,
                       const std::vector<double>& back, double largest) {
  double now = 0;
  double peak = 0;
  size_t left = 0;
  size_t to_come = back.size();
  for (const HeldChange& change : held) {
    now += change.bytes;
    if (change.bytes < 0) continue;
    while (left < out.size() && out[left] <= late(late(change.seconds))) ++left;
    while (to_come > 0 && late(late(back[to_come - 1])) <= change.seconds) --to_come;
    peak = std::max(peak, now - static_cast<double>(std::min(left, to_come)) * largest);
  }
  return peak;
}

}  // namespace

std::vector<LinkRule> link_rules(int chunks, int devices, size_t most) {
  constexpr int kMostInTurn = 8;
  std::vector<int> fewer;
  for (int n = chunks; n > 0; n = n > kMostInTurn ? n / 2 : n - 1) fewer.push_back(n);
  std::vector<LinkRule> rules;
  const auto add = [&rules, most](const LinkRule& rule) {
    if (rules.size() < most && std::ranges::count(rules, rule) == 0) rules.push_back(rule);
  };
  const bool turns = devices > 1;
  if (turns) add({.chunks = chunks, .turns = true});
  for (const double wait : {kNever, 0.125, 0.25}) add({.chunks = chunks, .wait = wait});
  for (const int n : fewer) add({.chunks = n});
  for (const int n : fewer) {
    for (const std::uint32_t first : {0U, 1U}) add({.chunks = n, .every = 2, .first = first});
  }
  for (const int n : fewer) {
    if (turns) add({.chunks = n, .turns = true});
  }
  for (const LinkRule& rule : std::vector(rules)) {
    for (const double wait : {0.25, 0.125, 0.5, 0.0625}) {
      LinkRule bounded = rule;
      bounded.wait = wait;
      add(bounded);
    }
  }
  return rules;
}

LinkPlan::LinkPlan(std::vector<Candidate> all, std::span<const DevicePasses> devices,
                   int first_device, double alone, int splits)
    : all_(std::move(all)),
      devices_(devices),
      first_device_(first_device),
      alone_(alone),
      splits_(static_cast<std::uint32_t>(splits)),
      by_made_(all_.size()) {
  std::iota(by_made_.begin(), by_made_.end(), 0U);
  by_needed_ = by_made_;
  const auto earlier = [this](auto time) {
    return [this, time](size_t a, size_t b) {
      const Candidate& x = all_[a];
      const Candidate& y = all_[b];
      return std::tuple(x.*time, x.copy.device, x.copy.unit) <
             std::tuple(y.*time, y.copy.device, y.copy.unit);
    };
  };
  std::ranges::stable_sort(by_made_, earlier(&Candidate::made));
  std::ranges::stable_sort(by_needed_, earlier(&Candidate::needed));
  out_end_.assign(all_.size(), 0);
  back_start_.assign(all_.size(), 0);
}

void LinkPlan::plan(const LinkRule& rule) {
  choose(rule);
  out_order_ = by_made_;
  back_order_ = by_needed_;
  if (rule.turns) take_turns();
  drop_what_cannot_come_back(rule.wait);
  place_back();
  drop_what_cannot_go_out(rule.wait);
  // Dropped copies leave the others more room: backs move later, outs earlier. A copy that spends
  // no time on the host saves nothing; every second such copy is dropped, until none is left.
  do {
    place_back();
    place_out();
  } while (drop_half_of_what_stays());
}

void LinkPlan::choose(const LinkRule& rule) {
  kept_.resize(all_.size());
  for (size_t i = 0; i < all_.size(); ++i) {
    const std::uint32_t microbatch = all_[i].copy.unit / splits_;
    kept_[i] = all_[i].rank < rule.chunks && microbatch >= rule.first &&
               (microbatch - rule.first) % rule.every == 0;
  }
}

// Time is cut into turns as long as the longest copy, and the devices have one after the other. A
// copy out begins with a turn of its device, a copy back ends as one begins; an activation that no
// two of them hold apart stays. The order is what remains of the turns: copies need not wait for
// theirs. (PipeOffload's public code, for pairs of devices.)
void LinkPlan::take_turns() {
  double turn = 0;
  double first = kNever;
  for (size_t i = 0; i < all_.size(); ++i) {
    if (!kept_[i]) continue;
    turn = std::max({turn, all_[i].out, all_[i].back});
    first = std::min(first, all_[i].made);
  }
  const size_t devices = devices_.size();
  const double round = static_cast<double>(devices) * turn;
  const auto own = [&](size_t device) { return first + static_cast<double>(device) * turn; };
  std::vector<double> free(devices, first);
  for (const size_t i : by_made_) {
    if (!kept_[i]) continue;
    const size_t d = all_[i].copy.device - first_device_;
    const double earliest = std::max(free[d], all_[i].made);
    const double start = own(d) + round * std::ceil((earliest - own(d)) / round);
    out_end_[i] = free[d] = start + turn;
  }
  free.assign(devices, kNever);
  for (size_t k = by_needed_.size(); k-- > 0;) {
    const size_t i = by_needed_[k];
    if (!kept_[i]) continue;
    const size_t d = all_[i].copy.device - first_device_;
    const double latest = std::min(free[d], all_[i].needed);
    const double end = own(d) + round * std::floor((latest - own(d)) / round);
    kept_[i] = out_end_[i] <= late(end - turn);
    if (kept_[i]) back_start_[i] = free[d] = end - turn;
  }
  std::ranges::stable_sort(out_order_, {}, [this](size_t i) { return out_end_[i]; });
  std::ranges::stable_sort(back_order_, {}, [this](size_t i) { return back_start_[i]; });
}

// Against the time from the last backward on: a copy back that would have to start before its
// activation can be out, or earlier than it may, makes the shortest lifespan of the busy period
// stay (Moore's rule, with lifespans instead of durations).
void LinkPlan::drop_what_cannot_come_back(double wait) {
  Shortest busy;
  double clock = kNever;
  for (size_t k = back_order_.size(); k-- > 0;) {
    const size_t i = back_order_[k];
    if (!kept_[i]) continue;
    const Candidate& each = all_[i];
    if (each.needed <= clock) {
      busy.clear();
      clock = each.needed;
    }
    clock -= each.back;
    busy.emplace(each.lifespan(), i);
    const double earliest =
        std::max(each.made + each.out, each.needed - each.back - patience(each, wait));
    if (earliest <= late(clock)) continue;
    const size_t least = busy.top().second;
    busy.pop();
    kept_[least] = false;
    clock += all_[least].back;
  }
}

void LinkPlan::drop_what_cannot_go_out(double wait) {
  Shortest busy;
  double clock = 0;
  for (const size_t i : out_order_) {
    if (!kept_[i]) continue;
    const Candidate& each = all_[i];
    if (each.made >= clock) {
      busy.clear();
      clock = each.made;
    }
    out_end_[i] = out_seconds(i, clock);
    clock += out_end_[i];
    busy.emplace(each.lifespan(), i);
    if (clock <= late(std::min(back_start_[i], each.made + each.out + patience(each, wait)))) {
      continue;
    }
    const size_t least = busy.top().second;
    busy.pop();
    kept_[least] = false;
    clock -= out_end_[least];
  }
}

bool LinkPlan::drop_half_of_what_stays() {
  bool changed = false;
  bool drop = true;
  for (const size_t i : out_order_) {
    if (!kept_[i] || late(out_end_[i]) < back_start_[i]) continue;
    if (drop) kept_[i] = false;
    drop = !drop;
    changed = true;
  }
  return changed;
}

// Backs as late as they can be.
void LinkPlan::place_back() {
  double clock = kNever;
  first_back_ = kNever;
  for (size_t k = back_order_.size(); k-- > 0;) {
    const size_t i = back_order_[k];
    if (!kept_[i]) continue;
    clock = std::min(clock, all_[i].needed) - all_[i].back;
    back_start_[i] = first_back_ = clock;
  }
}

// Outs as early as they can be.
void LinkPlan::place_out() {
  double clock = 0;
  for (const size_t i : out_order_) {
    if (!kept_[i]) continue;
    const double start = std::max(clock, all_[i].made);
    out_end_[i] = clock = start + out_seconds(i, start);
  }
}

// Before the first copy back a copy out has the link for itself.
double LinkPlan::out_seconds(size_t i, double start) const {
  const double seconds = alone_ * all_[i].out;
  return start + seconds <= first_back_ ? seconds : all_[i].out;
}

LinkPeak LinkPlan::peak() const {
  std::vector<std::vector<HeldChange>> gone(devices_.size());
  std::vector<std::vector<HeldChange>> returned(devices_.size());
  for (const size_t i : out_order_) {
    if (kept_[i]) gone[all_[i].copy.device - first_device_].push_back({out_end_[i], all_[i].bytes});
  }
  // A copy back follows the last pass that has ended by its time, and so may start earlier.
  std::vector<size_t> ended(devices_.size(), 0);
  double clock = 0;
  for (const size_t i : back_order_) {
    if (!kept_[i]) continue;
    const size_t d = all_[i].copy.device - first_device_;
    const auto ends = devices_[d].ends;
    size_t& at = ended[d];
    while (at < ends.size() && ends[at] <= late(back_start_[i])) ++at;
    clock = std::max({clock, out_end_[i], at == 0 ? 0 : ends[at - 1]});
    returned[d].push_back({clock, all_[i].bytes});
    clock += all_[i].back;
  }
  return peak_of(gone, returned);
}

// No plan of the candidates that are kept now has less.
LinkPeak LinkPlan::peak_with_links_of_their_own() {
  std::vector<std::vector<HeldChange>> gone(devices_.size());
  std::vector<std::vector<HeldChange>> returned(devices_.size());
  double out = kNever;
  double back = kNever;
  for (const Candidate& each : all_) {
    out = std::min(out, alone_ * each.out);
    back = std::min(back, each.back);
  }
  for (const size_t i : by_made_) {
    const Candidate& each = all_[i];
    if (kept_[i]) gone[each.copy.device - first_device_].push_back({each.made + out, each.bytes});
  }
  for (const size_t i : by_needed_) {
    const Candidate& each = all_[i];
    if (!kept_[i]) continue;
    returned[each.copy.device - first_device_].push_back({each.needed - back, each.bytes});
  }
  return peak_of(gone, returned);
}

LinkPeak LinkPlan::peak_of(const std::vector<std::vector<HeldChange>>& gone,
                           const std::vector<std::vector<HeldChange>>& returned) const {
  LinkPeak peaks;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const double peak = peak_of_device(devices_[d].held, gone[d], returned[d]);
    peaks = {std::max(peaks.most, peak), peaks.sum + peak};
  }
  return peaks;
}

// Each device as if the link were its own and all copies were as short as the shortest: of copies
// that are equally long no order lets more end by any time than that of their activations.
LinkPeak LinkPlan::least_peak() const {
  LinkPeak peaks;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const auto elsewhere = [&](size_t i) { return all_[i].copy.device - first_device_ != d; };
    double shortest_out = kNever;
    double shortest_back = kNever;
    double largest = 0;
    for (size_t i = 0; i < all_.size(); ++i) {
      if (elsewhere(i)) continue;
      shortest_out = std::min(shortest_out, alone_ * all_[i].out);
      shortest_back = std::min(shortest_back, all_[i].back);
      largest = std::max(largest, all_[i].bytes);
    }
    std::vector<double> out, back;
    double clock = 0;
    for (const size_t i : by_made_) {
      if (elsewhere(i)) continue;
      out.push_back(clock = std::max(clock, all_[i].made) + shortest_out);
    }
    clock = kNever;
    for (size_t k = by_needed_.size(); k-- > 0;) {
      const size_t i = by_needed_[k];
      if (elsewhere(i)) continue;
      back.push_back(clock = std::min(clock, all_[i].needed) - shortest_back);
    }
    const double peak = least_of_device(devices_[d].held, out, back, largest);
    peaks = {std::max(peaks.most, peak), peaks.sum + peak};
  }
  return peaks;
}

LinkRule LinkPlan::plan_least(std::span<const LinkRule> rules, std::vector<double>* peaks) {
  const LinkPeak least_of_all = least_peak();
  LinkPeak best{kNever, kNever};
  LinkRule found, planned;
  std::vector<std::pair<LinkRule, double>> least;  // by rule without a bound
  for (const LinkRule& rule : rules) {
    const bool is_least =
        best.most <= late(least_of_all.most) && best.sum <= late(least_of_all.sum);
    if (peaks == nullptr && is_least) break;
    const LinkRule scope{.chunks = rule.chunks, .every = rule.every, .first = rule.first};
    auto known = std::ranges::find(least, scope, &std::pair<LinkRule, double>::first);
    if (known == least.end()) {
      choose(scope);
      planned = {};
      known = least.insert(known, {scope, peak_with_links_of_their_own().most});
    }
    if (peaks != nullptr) peaks->push_back(known->second);
    if (best.most <= late(known->second)) continue;
    plan(planned = rule);
    const LinkPeak now = peak();
    if (peaks != nullptr) peaks->back() = now.most;
    if (now < best) found = rule;
    best = std::min(best, now);
  }
  if (planned != found) plan(found);
  return found;
}

std::vector<std::pair<Copy, double>> LinkPlan::out() const {
  std::vector<std::pair<Copy, double>> copies;
  for (const size_t i : out_order_) {
    if (!kept_[i]) continue;
    copies.emplace_back(all_[i].copy, out_end_[i]);
    copies.back().first.alone = out_end_[i] <= first_back_;
  }
  return copies;
}

std::vector<std::pair<Copy, double>> LinkPlan::back() const {
  std::vector<std::pair<Copy, double>> copies;
  for (const size_t i : back_order_) {
    if (kept_[i]) copies.emplace_back(all_[i].copy, back_start_[i]);
  }
  return copies;
}

}  // namespace pipesim
