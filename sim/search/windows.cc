#include "sim/search/windows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <queue>
#include <vector>

namespace pipesim {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

enum Kind : std::size_t { kForward, kBackward, kWeight, kKinds };

struct Stage {
  std::array<double, kKinds> seconds{};
  double from_upstream = 0, from_downstream = 0;
  double activation = 0, stash = 0;
  int device = 0, chunk = 0;
};

class Windows {
 public:
  Windows(const Problem& problem, Bytes limit);
  [[nodiscard]] double bound(Objective objective);

 private:
  // Passes of one kind of every stage, and on a device sums over a range of its chunks.
  using Times = std::vector<double>;

  [[nodiscard]] std::size_t at(int stage, int n) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(m_) +
           static_cast<std::size_t>(n);
  }
  [[nodiscard]] const Stage& stage(int s) const { return stages_[static_cast<std::size_t>(s)]; }
  [[nodiscard]] const std::vector<int>& stages_of(int device) const {
    return on_device_[static_cast<std::size_t>(device)];
  }
  [[nodiscard]] bool behind(int s) const { return s >= first_; }
  [[nodiscard]] double sum(int device, Kind kind, int from_chunk, int to_chunk) const;
  [[nodiscard]] int held(int s, int other) const;
  [[nodiscard]] double after_memory(int s, int n) const;
  [[nodiscard]] double after_weights(double bytes, const std::vector<int>& stages,
                                     std::array<int, 2> at_most, double busy) const;
  [[nodiscard]] double after_releases(int s, int n, double start) const;
  [[nodiscard]] double ended(Kind kind, int s, int n) const {
    return head_[kind][at(s, n)] + stage(s).seconds[kind];
  }
  void find_heads();
  void find_tails(int device);
  void tail_of_backward(int device, int s, int n);
  void tail_of_forward(int device, int s, int n);
  [[nodiscard]] double one_machine(int device) const;
  [[nodiscard]] double through(int device) const;

  int p_, m_, count_, first_ = 0;
  double limit_;
  std::vector<Stage> stages_;
  std::vector<std::vector<int>> on_device_;
  std::array<Times, kKinds> head_, tail_;
};

Windows::Windows(const Problem& problem, Bytes limit)
    : p_(problem.shape.devices),
      m_(problem.shape.units()),
      count_(problem.placement.model_stages()),
      limit_(limit.value() * kRounding),
      on_device_(static_cast<std::size_t>(p_)) {
  for (int s = 0; s < count_; ++s) {
    const StageCost& cost = problem.stage(s);
    Stage stage;
    stage.seconds = {cost.forward.value(), cost.backward_input.value(),
                     cost.backward_weight.value()};
    if (s > 0) stage.from_upstream = problem.stage(s - 1).transfer.value();
    if (s + 1 < count_) stage.from_downstream = cost.transfer.value();
    stage.activation = cost.activation.value();
    stage.stash = cost.weight_stash.value();
    stage.device = problem.placement.device(s);
    stage.chunk = problem.placement.chunk(s);
    stages_.push_back(stage);
    on_device_[static_cast<std::size_t>(stage.device)].push_back(s);
  }
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    head_[kind].resize(at(count_, 0));
    tail_[kind].resize(at(count_, 0));
  }
}

double Windows::bound(Objective objective) {
  constexpr double kEffort = 1e4;  // windows; of a large problem not every device is looked at
  const int devices = std::clamp(static_cast<int>(kEffort / (count_ * m_)), 1, p_);
  double bound = 0;
  for (int i = 0; i < devices; ++i) {
    const int device = i * p_ / devices;
    first_ = stages_of(device).front();
    find_heads();
    find_tails(device);
    double before = 0;  // the way of the first F to this device
    for (int s = 0; objective == Objective::kMakespan && s < first_; ++s) {
      before += stage(s).seconds[kForward] + stage(s).from_downstream;
    }
    bound = std::max({bound, before + one_machine(device), before + through(device)});
  }
  return bound;
}

// Seconds of one pass of each chunk in [from, to) that stands behind the first stage.
double Windows::sum(int device, Kind kind, int from_chunk, int to_chunk) const {
  double seconds = 0;
  for (const int s : stages_of(device)) {
    const Stage& of = stage(s);
    if (behind(s) && of.chunk >= from_chunk && of.chunk < to_chunk) seconds += of.seconds[kind];
  }
  return seconds;
}

// The most microbatches k that stage `other` can hold when F of stage s starts: F of n+k there
// waits for B of n here. What the chunks between hold of that one microbatch counts too.
int Windows::held(int s, int other) const {
  double room = limit_;
  double each = 0;
  for (const int t : stages_of(stage(s).device)) {
    if (t > s) break;
    if (t > other)
      room -= stage(t).activation;
    else
      each += stage(t).activation;
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
    head = std::max(head, head_[kBackward][at(other, before)] + stage(other).seconds[kBackward]);
  }
  return head;
}

// When the device can have released `bytes` by W, at most so many of each of its (one or two)
// stages, having run other passes until `busy`.
double Windows::after_weights(double bytes, const std::vector<int>& stages,
                              std::array<int, 2> at_most, double busy) const {
  const auto needed = [](double rest, const Stage& of) {
    if (rest <= 0) return 0;
    return of.stash > 0 ? static_cast<int>(std::min(1e9, std::ceil(rest / of.stash))) : 1 << 30;
  };
  const auto time_of = [&](int s, int count) {
    return count == 0 ? kNever : ended(kWeight, s, count - 1);
  };
  const Stage& first = stage(stages.front());
  double least = std::numeric_limits<double>::infinity();
  const int most = std::min(at_most[0], needed(bytes, first));
  if (stages.size() == 1) {
    if (needed(bytes, first) > most) return least;
    return std::max(time_of(stages.front(), most), busy + most * first.seconds[kWeight]);
  }
  const Stage& second = stage(stages.back());
  for (int w0 = 0; w0 <= most; ++w0) {
    const int w1 = needed(bytes - w0 * first.stash, second);
    if (w1 > at_most[1]) continue;
    least = std::min(least,
                     std::max({time_of(stages.front(), w0), time_of(stages.back(), w1),
                               busy + w0 * first.seconds[kWeight] + w1 * second.seconds[kWeight]}));
  }
  return least;
}

// One or two chunks: so many B and W of each have run that F of n has room. Least over the choices;
// those that are not looked at count with the B that they need at least.
double Windows::after_releases(int s, int n, double start) const {
  constexpr int kChoices = 48;
  const auto& stages = stages_of(stage(s).device);
  const Stage& first = stage(stages.front());
  const Stage* second = stages.size() > 1 ? &stage(stages.back()) : nullptr;
  const double a1 = second == nullptr ? 0 : second->activation;
  int forwards = s == stages.front() ? 0 : n + 1;  // of the second chunk
  if (second != nullptr && s == stages.front() && first.activation > 0) {
    // An F of the second chunk for which there would be no room once F of n has run comes before.
    forwards = static_cast<int>(
        std::clamp<double>(std::ceil(n + 1 - (limit_ - a1) / first.activation), 0, n));
  }
  double least = std::numeric_limits<double>::infinity();
  int looked_at = 0;
  for (int x0 = 0; x0 <= n; ++x0) {
    const double reached0 = x0 == 0 ? start : ended(kBackward, stages.front(), x0 - 1);
    if (reached0 >= least) break;
    const int most = second == nullptr ? x0 : n;
    for (int x1 = x0; x1 <= most; ++x1) {
      const int f1 = second == nullptr ? 0 : std::max(forwards, x1);
      double held = (n + 1) * first.activation - x0 * (first.activation - first.stash);
      if (second != nullptr) held += f1 * a1 - x1 * (a1 - second->stash);
      double time = reached0;
      if (second != nullptr && x1 > 0)
        time = std::max(time, ended(kBackward, stages.back(), x1 - 1));
      if (time >= least) break;
      double busy = start + x0 * first.seconds[kBackward];
      if (s == stages.front()) {
        busy += n * first.seconds[kForward];
        if (second != nullptr) busy += f1 * second->seconds[kForward];
      } else {
        busy += (n + 1) * first.seconds[kForward] + n * second->seconds[kForward];
      }
      if (second != nullptr) busy += x1 * second->seconds[kBackward];
      least = std::min(least, std::max(time, after_weights(held - limit_, stages, {x0, x1}, busy)));
      if (++looked_at == kChoices) return std::min(least, reached0);
    }
  }
  return std::isinf(least) ? kNever : least;
}

void Windows::find_heads() {
  std::vector<double> start(static_cast<std::size_t>(p_));  // of the device's first F
  for (int n = 0; n < m_; ++n) {
    for (int s = first_; s < count_; ++s) {
      const Stage& of = stage(s);
      const auto e = static_cast<std::size_t>(of.device);
      double head = s == first_ ? 0 : kNever;
      if (s > first_) {
        head = head_[kForward][at(s - 1, n)] + stage(s - 1).seconds[kForward] + of.from_upstream;
      }
      if (n == 0 &&
          s == *std::ranges::find_if(stages_of(of.device), [this](int t) { return behind(t); })) {
        start[e] = head;
      }
      if (n > 0) {
        head = std::max(
            {head, head_[kForward][at(s, n - 1)] + of.seconds[kForward], after_memory(s, n)});
        const auto& own = stages_of(of.device);
        if (own.size() <= 2 && behind(own.front())) {
          head = std::max(head, after_releases(s, n, start[e]));
        }
      }
      head = std::max(head, start[e] + n * of.seconds[kForward] +
                                (n + 1) * sum(of.device, kForward, 0, of.chunk));
      head_[kForward][at(s, n)] = head;
    }
    for (int s = count_ - 1; s >= first_; --s) {
      const Stage& of = stage(s);
      const auto e = static_cast<std::size_t>(of.device);
      double head = head_[kForward][at(s, n)] + of.seconds[kForward];
      if (s + 1 < count_) {
        head = std::max(head, head_[kBackward][at(s + 1, n)] + stage(s + 1).seconds[kBackward] +
                                  of.from_downstream);
      }
      if (n > 0) head = std::max(head, head_[kBackward][at(s, n - 1)] + of.seconds[kBackward]);
      const int v = static_cast<int>(stages_of(of.device).size());
      head = std::max(head, start[e] + (n + 1) * sum(of.device, kForward, 0, v) +
                                n * of.seconds[kBackward] +
                                (n + 1) * sum(of.device, kBackward, of.chunk + 1, v));
      head_[kBackward][at(s, n)] = head;
      double weight = head + of.seconds[kBackward];
      if (n > 0) weight = std::max(weight, head_[kWeight][at(s, n - 1)] + of.seconds[kWeight]);
      head_[kWeight][at(s, n)] = weight;
    }
  }
}

void Windows::tail_of_backward(int device, int s, int n) {
  const Stage& of = stage(s);
  const bool own = of.device == device;
  double tail = kNever;
  if (own) tail = (m_ - n) * of.seconds[kWeight];
  if (s > first_) {
    const Stage& up = stage(s - 1);
    tail =
        std::max(tail, up.from_downstream + up.seconds[kBackward] + tail_[kBackward][at(s - 1, n)]);
  }
  if (n + 1 < m_) tail = std::max(tail, of.seconds[kBackward] + tail_[kBackward][at(s, n + 1)]);
  // What must run on this device later.
  double later =
      (m_ - 1 - n) * of.seconds[kBackward] + (m_ - n) * sum(of.device, kBackward, 0, of.chunk);
  for (const int t : stages_of(of.device)) {
    if (t < s) continue;
    const int next = n + held(t, s);
    if (next >= m_ || next <= n) continue;
    later += (m_ - next) * stage(t).seconds[kForward];
    tail = std::max(tail, stage(t).seconds[kForward] + tail_[kForward][at(t, next)]);
  }
  if (own) {
    tail = std::max(tail, later + (m_ - n) * sum(of.device, kWeight, 0, of.chunk + 1));
  } else if (n + 1 < m_) {
    const int last =
        *std::ranges::find_if(stages_of(of.device), [this](int t) { return behind(t); });
    tail = std::max(tail, later + tail_[kBackward][at(last, m_ - 1)]);
  }
  tail_[kBackward][at(s, n)] = tail;
  if (own) tail_[kWeight][at(s, n)] = (m_ - 1 - n) * of.seconds[kWeight];
}

void Windows::tail_of_forward(int device, int s, int n) {
  const Stage& of = stage(s);
  const int v = static_cast<int>(stages_of(of.device).size());
  double tail = of.seconds[kBackward] + tail_[kBackward][at(s, n)];
  if (s + 1 < count_) {
    tail = std::max(
        tail, of.from_downstream + stage(s + 1).seconds[kForward] + tail_[kForward][at(s + 1, n)]);
  }
  if (n + 1 < m_) tail = std::max(tail, of.seconds[kForward] + tail_[kForward][at(s, n + 1)]);
  double later =
      (m_ - 1 - n) * of.seconds[kForward] +
      (m_ - n) * (sum(of.device, kForward, of.chunk + 1, v) + sum(of.device, kBackward, 0, v));
  if (of.device == device) {
    later += (m_ - n) * sum(of.device, kWeight, 0, v);
  } else {
    const int last =
        *std::ranges::find_if(stages_of(of.device), [this](int t) { return behind(t); });
    later += tail_[kBackward][at(last, m_ - 1)];
  }
  tail_[kForward][at(s, n)] = std::max(tail, later);
}

void Windows::find_tails(int device) {
  for (int n = m_ - 1; n >= 0; --n) {
    for (int s = first_; s < count_; ++s) tail_of_backward(device, s, n);
    for (int s = count_ - 1; s >= first_; --s) tail_of_forward(device, s, n);
  }
}

// Jackson's preemptive schedule: at any time the job with the longest tail of those that may run.
double Windows::one_machine(int device) const {
  struct Job {
    double head, seconds, tail;
  };
  std::vector<Job> jobs;
  for (const int s : stages_of(device)) {
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      for (int n = 0; n < m_; ++n) {
        jobs.push_back({head_[kind][at(s, n)], stage(s).seconds[kind], tail_[kind][at(s, n)]});
      }
    }
  }
  std::ranges::sort(jobs, {}, &Job::head);
  const auto shorter = [](const Job& a, const Job& b) { return a.tail < b.tail; };
  std::priority_queue<Job, std::vector<Job>, decltype(shorter)> ready(shorter);
  double time = 0;
  double bound = 0;
  for (std::size_t next = 0; next < jobs.size() || !ready.empty();) {
    if (ready.empty()) time = std::max(time, jobs[next].head);
    for (; next < jobs.size() && jobs[next].head <= time; ++next) ready.push(jobs[next]);
    Job job = ready.top();
    ready.pop();
    const bool interrupted = next < jobs.size() && jobs[next].head < time + job.seconds;
    const double until = interrupted ? jobs[next].head : time + job.seconds;
    job.seconds -= until - time;
    time = until;
    if (interrupted && job.seconds > 0) {
      ready.push(job);
    } else {
      bound = std::max(bound, time + job.tail);
    }
  }
  return bound;
}

double Windows::through(int device) const {
  double bound = 0;
  for (int e = 0; e < p_; ++e) {
    const auto& stages = stages_of(e);
    const auto first = std::ranges::find_if(stages, [this](int s) { return behind(s); });
    if (e == device || first == stages.end()) continue;
    const int v = static_cast<int>(stages.size());
    const double work = m_ * (sum(e, kForward, 0, v) + sum(e, kBackward, 0, v));
    bound = std::max(bound,
                     head_[kForward][at(*first, 0)] + work + tail_[kBackward][at(*first, m_ - 1)]);
  }
  return bound;
}

}  // namespace

Seconds bound_of_windows(const Problem& problem, Bytes limit, Objective objective) {
  return Seconds(Windows(problem, limit).bound(objective));
}

}  // namespace pipesim
