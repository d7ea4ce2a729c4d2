#include "sim/goodput/training_run.h"

#include <algorithm>
#include <boost/random/mersenne_twister.hpp>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/stop.h"

namespace pipesim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kMostFailures = 10'000'000;

// Times of a Poisson process.
class Arrivals {
 public:
  Arrivals(double rate, std::uint64_t seed) : rate_(rate), random_(seed) { advance(); }
  [[nodiscard]] double next() const { return next_; }
  void advance() {
    if (rate_ <= 0) {
      next_ = kNever;
      return;
    }
    // In (0, 1], from the 53 highest bits: the same on every machine.
    const double uniform = (static_cast<double>(random_() >> 11U) + 1) * 0x1p-53;
    next_ -= std::log(uniform) / rate_;
  }

 private:
  double rate_;
  boost::random::mt19937_64 random_;
  double next_ = 0;
};

class Simulation {
 public:
  Simulation(const InterruptedRun& run, std::uint64_t seed)
      : run_(run),
        failures_(run.failure_rate, 2 * seed),
        slow_(run.slow_rate, 2 * seed + 1),
        spares_(run.spare_nodes.value_or(0)) {}

  RunTime finish() {
    const double work = run_.work.value();
    while (kept_ < work) {
      check_stop();
      const double until = std::min(run_.interval.value(), work - kept_);
      if (!train(until)) continue;
      if (kept_ + until < work && !write_checkpoint()) continue;
      kept_ += until;
      since_ = 0;
    }
    time_.training = Seconds(kept_);
    return time_;
  }

 private:
  // Works on until so much is done since the last checkpoint; false where it ends elsewhere.
  bool train(double until) {
    while (since_ < until) {
      const bool slow = slow_until_ < kNever;
      const double speed = slow ? 1 / run_.slow_factor : 1;
      const double done = now_ + (until - since_) / speed;
      const double change = slow ? slow_until_ : slow_.next();
      const double event = std::min(failures_.next(), change);
      // An event during the write of a checkpoint counts from its end.
      const double next = std::max(now_, std::min(done, event));
      time_.slow += Seconds((next - now_) * (1 - speed));
      since_ = done <= event ? until : since_ + (next - now_) * speed;
      now_ = next;
      if (done <= event) return true;
      if (failures_.next() <= change) return fail();
      if (slow) {
        replace_slow_node();
        return false;
      }
      ++time_.slow_nodes;
      slow_until_ = now_ + run_.slow_found.value();
      slow_.advance();
    }
    return true;
  }

  bool write_checkpoint() {
    const double done = now_ + run_.checkpoint.value();
    const double next = std::min(done, failures_.next());
    time_.checkpoints += Seconds(next - now_);
    now_ = next;
    return next == done || fail();
  }

  // False: what was done since the last checkpoint is to be done again.
  bool fail() {
    time_.lost += Seconds(since_);
    since_ = 0;
    slow_until_ = kNever;
    take_failure();
    restart();
    return false;
  }

  // It is asked to write a checkpoint first, so nothing is lost.
  void replace_slow_node() {
    slow_until_ = kNever;
    const double until = since_;
    if (!write_checkpoint()) return;
    kept_ += until;
    since_ = 0;
    take_node();
    restart();
  }

  void restart() {
    for (double done = now_ + run_.restart.value();; done = now_ + run_.restart.value()) {
      const double next = std::min(done, failures_.next());
      time_.restarts += Seconds(next - now_);
      now_ = next;
      if (next == done) return;
      take_failure();
    }
  }

  void take_failure() {
    failures_.advance();
    if (++time_.failures > kMostFailures) {
      throw InfeasibleError(fmt::format(
          "more than {} failures within a run: it does not come to its end", kMostFailures));
    }
    take_node();
  }

  // A node leaves for its repair, and another takes its place, when there is one.
  void take_node() {
    if (!run_.spare_nodes) return;
    in_repair_.push(now_ + run_.repair.value());
    for (; !in_repair_.empty() && in_repair_.top() <= now_; in_repair_.pop()) ++spares_;
    if (spares_ == 0) {
      const double back = in_repair_.top();
      in_repair_.pop();
      time_.waiting += Seconds(back - now_);
      now_ = back;
      // Nodes that fail while the run stands still are not of it.
      while (failures_.next() < now_) failures_.advance();
      while (slow_.next() < now_) slow_.advance();
      return;
    }
    --spares_;
  }

  const InterruptedRun& run_;
  Arrivals failures_;
  Arrivals slow_;
  int spares_;
  std::priority_queue<double, std::vector<double>, std::greater<>> in_repair_;
  double now_ = 0;
  double kept_ = 0;   // work that a checkpoint holds
  double since_ = 0;  // work since
  double slow_until_ = kNever;
  RunTime time_;
};

}  // namespace

RunTime simulate_run(const InterruptedRun& run, std::uint64_t seed) {
  return Simulation(run, seed).finish();
}

double expected_steps(const InterruptedRun& run) {
  const double intervals = std::ceil(std::max(1.0, run.work / run.interval));
  const double exposed = (run.interval + run.checkpoint).value();
  const double failures =
      std::exp(run.failure_rate * run.restart.value()) * std::expm1(run.failure_rate * exposed);
  const double time = run.failure_rate > 0 ? failures / run.failure_rate : exposed;
  // Failures of nodes that stand still for a repair are passed over one by one.
  const double standing =
      run.spare_nodes ? failures * (run.failure_rate + run.slow_rate) * run.repair.value() : 0;
  const double slowed = run.slow_rate > 0 ? run.slow_rate * time : 0;
  return intervals * (1 + failures + slowed + standing);
}

Seconds young_interval(Seconds checkpoint, double failure_rate) {
  return Seconds(std::sqrt(2 * checkpoint.value() / failure_rate));
}

Seconds daly_interval(Seconds checkpoint, double failure_rate) {
  const double mean = 1 / failure_rate;
  const double share = checkpoint.value() / (2 * mean);
  if (share >= 1) return Seconds(mean);
  return Seconds(std::sqrt(2 * checkpoint.value() * mean) * (1 + std::sqrt(share) / 3 + share / 9) -
                 checkpoint.value());
}

}  // namespace pipesim
