#include "sim/planning/windows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "sim/core/enum_array.h"
#include "sim/core/grid.h"
#include "sim/planning/one_machine.h"
#include "sim/planning/room.h"

namespace pipesim {

namespace windows {
enum class Kind { kForward, kBackward, kWeight };
}
template <>
inline constexpr std::size_t kSizeOf<windows::Kind> = 3;

namespace windows {
namespace {

using enum Kind;

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNever = -kInfinite;
constexpr std::array kKinds{kForward, kBackward, kWeight};

struct Stage {
  EnumArray<Kind, double> seconds{};  // where units cost alike
  double activation = 0, stash = 0;   // of the unit that keeps least
  int device = 0, chunk = 0;
};

// Seconds of the passes of a kind: of a problem's units, or one row of units that cost alike.
class UnitSeconds {
 public:
  UnitSeconds() = default;
  UnitSeconds(int stages, int units) : one_(stages, units), before_(stages, units + 1) {}

  void add(int s, int n, double seconds) {
    one_(s, n) = seconds;
    before_(s, n + 1) = before_(s, n) + seconds;
  }
  [[nodiscard]] double of(int s, int n) const { return one_(s, n); }
  [[nodiscard]] double of(int s, int from, int to) const {
    return before_(s, to) - before_(s, from);
  }

 private:
  Grid<double> one_, before_;  // of a unit; of all units before it
};

EnumArray<Kind, double> seconds_of(const StageCost& cost) {
  return {cost.forward.value(), cost.backward_input.value(), cost.backward_weight.value()};
}

class Windows {
 public:
  Windows(const Problem& problem, Bytes limit);
  [[nodiscard]] WindowsBound bound(Objective objective, int most_devices);

 private:
  // [from, to)
  struct Range {
    int from = 0, to = 0;
  };
  // How many B of each of a device's one or two stages have run.
  struct Choice {
    int first = 0, second = 0;
  };
  // F of microbatch `n` of stage `s`, whose device has one or two stages, needs room. Its device
  // has started at `start`.
  struct Need {
    int s = 0, n = 0;
    double start = 0;
    int forwards = 0;  // of the second stage, which run before
  };

  [[nodiscard]] const Stage& stage(int s) const { return stages_[s]; }
  [[nodiscard]] const std::vector<int>& stages_of(int device) const { return on_device_[device]; }
  [[nodiscard]] int chunks_of(int device) const {
    return static_cast<int>(stages_of(device).size());
  }
  [[nodiscard]] bool behind(int s) const { return s >= first_; }
  // The device's first stage that stands behind the first one of all, or -1.
  [[nodiscard]] int first_behind(int device) const;
  // Seconds of one unit's pass, or of those of units [from, to).
  [[nodiscard]] double seconds(Kind kind, int s, int n) const {
    return alike_ ? stage(s).seconds[kind] : units_[kind].of(s, n);
  }
  [[nodiscard]] double seconds(Kind kind, int s, int from, int to) const {
    return alike_ ? (to - from) * stage(s).seconds[kind] : units_[kind].of(s, from, to);
  }
  // Seconds of unit `n`'s message between stages s and s + 1, either way.
  [[nodiscard]] double message(int s, int n) const { return messages_(s, alike_ ? 0 : n); }
  [[nodiscard]] double sum(int device, Kind kind, Range chunks, Range units) const;
  [[nodiscard]] int held(int s, int other) const;
  [[nodiscard]] double after_memory(int s, int n) const;
  [[nodiscard]] double after_releases(int s, int n) const;
  [[nodiscard]] int forwards_before(int s, int n) const;
  [[nodiscard]] double reached(const Need& need, const Choice& run) const;
  [[nodiscard]] double bytes_over(const Need& need, const Choice& run) const;
  [[nodiscard]] double most_freed(const std::vector<int>& stages, const Choice& run) const;
  [[nodiscard]] double busy_until(const Need& need, const Choice& run) const;
  [[nodiscard]] double after_weights(double bytes, const std::vector<int>& stages,
                                     const Choice& at_most, double busy) const;
  [[nodiscard]] double ended(Kind kind, int s, int n) const {
    return head_[kind](s, n) + seconds(kind, s, n);
  }
  void find_heads();
  [[nodiscard]] double head_of_forward(int s, int n) const;
  [[nodiscard]] double head_of_backward(int s, int n) const;
  [[nodiscard]] double head_of_weight(int s, int n) const;
  void find_tails(int device);
  void tail_of_backward(int device, int s, int n);
  void tail_of_forward(int device, int s, int n);
  [[nodiscard]] MachineBound one_machine(int device) const;
  [[nodiscard]] double through(int device) const;

  int p_, m_, count_, first_ = 0;
  double limit_;
  bool alike_;  // all units
  std::vector<Stage> stages_;
  EnumArray<Kind, UnitSeconds> units_;  // where they are not
  Grid<double> messages_;
  std::vector<std::vector<int>> on_device_;
  EnumArray<Kind, Grid<double>> head_, tail_;  // by stage and microbatch
  std::vector<double> start_;                  // by device: of its first F
};

Windows::Windows(const Problem& problem, Bytes limit)
    : p_(problem.shape.devices),
      m_(problem.shape.units()),
      count_(problem.placement.model_stages()),
      limit_(limit.value() * kRounding),
      alike_(problem.kinds.empty()),
      messages_(count_, alike_ ? 1 : m_),
      on_device_(p_),
      start_(p_) {
  if (!alike_) units_.fill({count_, m_});
  for (int s = 0; s < count_; ++s) {
    const StageCost& cost = problem.stage(s);
    Stage stage;
    stage.seconds = seconds_of(cost);
    stage.activation = cost.activation.value();
    stage.stash = cost.weight_stash.value();
    for (const UnitKind& kind : problem.kinds) {
      stage.activation = std::min(stage.activation, kind.stages[s].activation.value());
      stage.stash = std::min(stage.stash, kind.stages[s].weight_stash.value());
    }
    stage.stash = std::min(stage.stash, stage.activation);
    for (int n = 0; n < static_cast<int>(messages_.columns()); ++n) {
      const auto unit = static_cast<std::uint32_t>(n);
      if (s + 1 < count_) messages_(s, n) = problem.transfer(s, s + 1, unit).value();
      if (alike_) continue;
      const EnumArray<Kind, double> of_unit = seconds_of(problem.stage(s, unit));
      for (const Kind kind : kKinds) units_[kind].add(s, n, of_unit[kind]);
    }
    stage.device = problem.placement.device(s);
    stage.chunk = problem.placement.chunk(s);
    stages_.push_back(stage);
    on_device_[stage.device].push_back(s);
  }
  for (auto& heads : head_) heads = Grid<double>(count_, m_);
  tail_ = head_;
}

WindowsBound Windows::bound(Objective objective, int most_devices) {
  constexpr double kEffort = 1e4;  // windows; of a large problem not every device is looked at
  const int devices =
      std::clamp(static_cast<int>(kEffort / (count_ * m_)), 1, std::min(p_, most_devices));
  WindowsBound bound;
  for (int i = 0; i < devices; ++i) {
    const int device = i * p_ / devices;
    first_ = stages_of(device).front();
    find_heads();
    find_tails(device);
    double before = 0;  // the way of the first F to this device
    for (int s = 0; objective == Objective::kMakespan && s < first_; ++s) {
      before += seconds(kForward, s, 0) + message(s, 0);
    }
    const MachineBound alone = one_machine(device);
    const Seconds by_itself(before + alone.seconds);
    if (by_itself > bound.seconds) bound = {by_itself, device, false, Seconds(alone.tail)};
    const Seconds there_and_back(before + through(device));
    if (there_and_back > bound.seconds) bound = {there_and_back, device, true, Seconds(0)};
  }
  return bound;
}

int Windows::first_behind(int device) const {
  const auto& stages = stages_of(device);
  const auto found = std::ranges::find_if(stages, [this](int s) { return behind(s); });
  return found == stages.end() ? -1 : *found;
}

// Seconds of these units' passes of each chunk that stands behind the first stage.
double Windows::sum(int device, Kind kind, Range chunks, Range units) const {
  double each = 0;
  double all = 0;
  for (const int s : stages_of(device)) {
    const int chunk = stage(s).chunk;
    if (!behind(s) || chunk < chunks.from || chunk >= chunks.to) continue;
    if (alike_) {
      each += stage(s).seconds[kind];
    } else {
      all += seconds(kind, s, units.from, units.to);
    }
  }
  return alike_ ? (units.to - units.from) * each : all;
}

// The most microbatches k that stage `other` can hold when F of stage s starts: F of n+k there
// waits for B of n here. The chunks between also hold that one microbatch.
int Windows::held(int s, int other) const {
  double room = limit_;
  double each = 0;
  for (const int t : stages_of(stage(s).device)) {
    if (t > s) break;
    if (t > other) {
      room -= stage(t).activation;
    } else {
      each += stage(t).activation;
    }
  }
  if (each <= 0) return m_;
  return static_cast<int>(std::min<double>(m_, std::floor(room / each)));
}

double Windows::after_memory(int s, int n) const {
  double head = kNever;
  for (const int other : stages_of(stage(s).device)) {
    if (other > s) break;
    if (!behind(other)) continue;
    const int before = n - held(s, other);
    if (before < 0 || before >= n) continue;
    head = std::max(head, ended(kBackward, other, before));
  }
  return head;
}

// One or two chunks: so many B and W of each have run that F of n has room. Least over the choices;
// those that are not looked at count with the B that they need at least.
double Windows::after_releases(int s, int n) const {
  constexpr int kChoices = 48;
  const auto& stages = stages_of(stage(s).device);
  const Need need{s, n, start_[stage(s).device], forwards_before(s, n)};
  double least = kInfinite;
  int looked_at = 0;
  for (int first = 0; first <= n; ++first) {
    const double at_least = reached(need, {first, 0});
    if (at_least >= least) break;
    const int most = stages.size() == 1 ? first : n;
    for (int second = first; second <= most; ++second) {
      const Choice run{first, second};
      if (least < kInfinite && reached(need, run) >= least) break;
      const double bytes = bytes_over(need, run);
      if (bytes <= most_freed(stages, run)) {
        const double freed = after_weights(bytes, stages, run, busy_until(need, run));
        least = std::min(least, std::max(reached(need, run), freed));
      }
      if (++looked_at == kChoices) return std::min(least, at_least);
    }
  }
  return std::isinf(least) ? kNever : least;
}

// F of the second of two stages that come before F of microbatch n of stage s.
int Windows::forwards_before(int s, int n) const {
  const auto& stages = stages_of(stage(s).device);
  if (stages.size() == 1) return 0;
  if (s != stages.front()) return n + 1;
  // One for which there would be no room once F of n has run comes before.
  const double each = stage(s).activation;
  if (each <= 0) return 0;
  const double room = limit_ - stage(stages.back()).activation;
  return static_cast<int>(std::clamp<double>(std::ceil(n + 1 - room / each), 0, n));
}

// When the last of these B can have ended.
double Windows::reached(const Need& need, const Choice& run) const {
  const auto& stages = stages_of(stage(need.s).device);
  double time = run.first == 0 ? need.start : ended(kBackward, stages.front(), run.first - 1);
  if (stages.size() > 1 && run.second > 0) {
    time = std::max(time, ended(kBackward, stages.back(), run.second - 1));
  }
  return time;
}

// Bytes that W must give back besides these B.
double Windows::bytes_over(const Need& need, const Choice& run) const {
  const auto& stages = stages_of(stage(need.s).device);
  const Stage& first = stage(stages.front());
  double held = (need.n + 1) * first.activation - run.first * (first.activation - first.stash);
  if (stages.size() > 1) {
    const Stage& second = stage(stages.back());
    held += std::max(need.forwards, run.second) * second.activation -
            run.second * (second.activation - second.stash);
  }
  return held - limit_;
}

// By W, whose B have run; a little more, so that rounding leaves nothing out.
double Windows::most_freed(const std::vector<int>& stages, const Choice& run) const {
  double bytes = run.first * stage(stages.front()).stash;
  if (stages.size() > 1) bytes += run.second * stage(stages.back()).stash;
  return kRounding * kRounding * bytes;
}

// When the device can have run these B and the F before.
double Windows::busy_until(const Need& need, const Choice& run) const {
  const auto& stages = stages_of(stage(need.s).device);
  const int first = stages.front();
  double busy = need.start + seconds(kBackward, first, 0, run.first);
  if (stages.size() == 1) return busy + seconds(kForward, first, 0, need.n);
  const int second = stages.back();
  if (need.s == first) {
    busy += seconds(kForward, first, 0, need.n);
    busy += seconds(kForward, second, 0, std::max(need.forwards, run.second));
  } else {
    busy += seconds(kForward, first, 0, need.n + 1) + seconds(kForward, second, 0, need.n);
  }
  return busy + seconds(kBackward, second, 0, run.second);
}

// When the device can have released `bytes` by W, at most so many of each of its (one or two)
// stages, having run other passes until `busy`.
double Windows::after_weights(double bytes, const std::vector<int>& stages, const Choice& at_most,
                              double busy) const {
  const auto needed = [](double rest, const Stage& of) {
    if (rest <= 0) return 0;
    return of.stash > 0 ? static_cast<int>(std::min(1e9, std::ceil(rest / of.stash))) : 1 << 30;
  };
  const auto time_of = [&](int s, int count) {
    return count == 0 ? kNever : ended(kWeight, s, count - 1);
  };
  const Stage& first = stage(stages.front());
  const int most = std::min(at_most.first, needed(bytes, first));
  if (stages.size() == 1) {
    if (needed(bytes, first) > most) return kInfinite;
    return std::max(time_of(stages.front(), most),
                    busy + seconds(kWeight, stages.front(), 0, most));
  }
  const Stage& second = stage(stages.back());
  if (needed(bytes - most * first.stash, second) > at_most.second) return kInfinite;
  double least = kInfinite;
  for (int w0 = 0; w0 <= most; ++w0) {
    const int w1 = needed(bytes - w0 * first.stash, second);
    if (w1 > at_most.second) continue;
    least = std::min(least, std::max({time_of(stages.front(), w0), time_of(stages.back(), w1),
                                      busy + seconds(kWeight, stages.front(), 0, w0) +
                                          seconds(kWeight, stages.back(), 0, w1)}));
  }
  return least;
}

void Windows::find_heads() {
  for (int n = 0; n < m_; ++n) {
    for (int s = first_; s < count_; ++s) {
      const int device = stage(s).device;
      const double arrives = s == first_ ? 0 : ended(kForward, s - 1, n) + message(s - 1, n);
      if (n == 0 && s == first_behind(device)) start_[device] = arrives;
      head_[kForward](s, n) = std::max(arrives, head_of_forward(s, n));
    }
    for (int s = count_ - 1; s >= first_; --s) {
      head_[kBackward](s, n) = head_of_backward(s, n);
      head_[kWeight](s, n) = head_of_weight(s, n);
    }
  }
}

// Not before what its own device does and holds.
double Windows::head_of_forward(int s, int n) const {
  const Stage& of = stage(s);
  double head = start_[of.device] + seconds(kForward, s, 0, n) +
                sum(of.device, kForward, {0, of.chunk}, {0, n + 1});
  if (n == 0) return head;
  head = std::max({head, ended(kForward, s, n - 1), after_memory(s, n)});
  const auto& own = stages_of(of.device);
  if (own.size() <= 2 && behind(own.front())) head = std::max(head, after_releases(s, n));
  return head;
}

double Windows::head_of_backward(int s, int n) const {
  const Stage& of = stage(s);
  const int chunks = chunks_of(of.device);
  double head = ended(kForward, s, n);
  if (s + 1 < count_) head = std::max(head, ended(kBackward, s + 1, n) + message(s, n));
  if (n > 0) head = std::max(head, ended(kBackward, s, n - 1));
  return std::max(head, start_[of.device] + sum(of.device, kForward, {0, chunks}, {0, n + 1}) +
                            seconds(kBackward, s, 0, n) +
                            sum(of.device, kBackward, {of.chunk + 1, chunks}, {0, n + 1}));
}

double Windows::head_of_weight(int s, int n) const {
  const double head = ended(kBackward, s, n);
  return n == 0 ? head : std::max(head, ended(kWeight, s, n - 1));
}

void Windows::tail_of_backward(int device, int s, int n) {
  const Stage& of = stage(s);
  const bool own = of.device == device;
  double tail = kNever;
  if (own) tail = seconds(kWeight, s, n, m_);
  if (s > first_) {
    tail = std::max(tail,
                    message(s - 1, n) + seconds(kBackward, s - 1, n) + tail_[kBackward](s - 1, n));
  }
  if (n + 1 < m_) tail = std::max(tail, seconds(kBackward, s, n + 1) + tail_[kBackward](s, n + 1));
  // Work that must run on this device later.
  double later =
      seconds(kBackward, s, n + 1, m_) + sum(of.device, kBackward, {0, of.chunk}, {n, m_});
  for (const int t : stages_of(of.device)) {
    if (t < s) continue;
    const int next = n + held(t, s);
    if (next >= m_ || next <= n) continue;
    later += seconds(kForward, t, next, m_);
    tail = std::max(tail, seconds(kForward, t, next) + tail_[kForward](t, next));
  }
  if (own) {
    tail = std::max(tail, later + sum(of.device, kWeight, {0, of.chunk + 1}, {n, m_}));
  } else if (n + 1 < m_) {
    tail = std::max(tail, later + tail_[kBackward](first_behind(of.device), m_ - 1));
  }
  tail_[kBackward](s, n) = tail;
  if (own) tail_[kWeight](s, n) = seconds(kWeight, s, n + 1, m_);
}

void Windows::tail_of_forward(int device, int s, int n) {
  const Stage& of = stage(s);
  const int v = chunks_of(of.device);
  double tail = seconds(kBackward, s, n) + tail_[kBackward](s, n);
  if (s + 1 < count_) {
    tail = std::max(tail, message(s, n) + seconds(kForward, s + 1, n) + tail_[kForward](s + 1, n));
  }
  if (n + 1 < m_) tail = std::max(tail, seconds(kForward, s, n + 1) + tail_[kForward](s, n + 1));
  double later =
      seconds(kForward, s, n + 1, m_) + (sum(of.device, kForward, {of.chunk + 1, v}, {n, m_}) +
                                         sum(of.device, kBackward, {0, v}, {n, m_}));
  if (of.device == device) {
    later += sum(of.device, kWeight, {0, v}, {n, m_});
  } else {
    later += tail_[kBackward](first_behind(of.device), m_ - 1);
  }
  tail_[kForward](s, n) = std::max(tail, later);
}

void Windows::find_tails(int device) {
  for (int n = m_ - 1; n >= 0; --n) {
    for (int s = first_; s < count_; ++s) tail_of_backward(device, s, n);
    for (int s = count_ - 1; s >= first_; --s) tail_of_forward(device, s, n);
  }
}

MachineBound Windows::one_machine(int device) const {
  std::vector<MachineJob> jobs;
  for (const int s : stages_of(device)) {
    for (const Kind kind : kKinds) {
      for (int n = 0; n < m_; ++n) {
        jobs.push_back({head_[kind](s, n), seconds(kind, s, n), tail_[kind](s, n)});
      }
    }
  }
  return one_machine_bound(std::move(jobs));
}

double Windows::through(int device) const {
  double bound = 0;
  for (int e = 0; e < p_; ++e) {
    const int first = first_behind(e);
    if (e == device || first < 0) continue;
    const int v = chunks_of(e);
    const double work = sum(e, kForward, {0, v}, {0, m_}) + sum(e, kBackward, {0, v}, {0, m_});
    bound = std::max(bound, head_[kForward](first, 0) + work + tail_[kBackward](first, m_ - 1));
  }
  return bound;
}

}  // namespace
}  // namespace windows

WindowsBound bound_of_windows(const Problem& problem, Bytes limit, int most_devices) {
  return windows::Windows(problem, limit).bound(problem.objective, most_devices);
}

}  // namespace pipesim
