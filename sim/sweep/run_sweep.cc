#include "sim/sweep/run_sweep.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include "sim/sweep/point.h"

namespace pipesim {
namespace {

constexpr int kTries = 2;
constexpr int kWaitMilliseconds = 100;
constexpr double kCommitSeconds = 0.5;
constexpr size_t kCommitPoints = 5000;

// Which points are still to be given to whom.
class Dispatch {
 public:
  Dispatch(const Sweep& sweep, const std::vector<bool>& stored, int workers)
      : sweep_(sweep), given_(workers) {
    std::vector<float> weights(sweep.settings());
    for (std::uint32_t s = 0; s < sweep.settings(); ++s) {
      weights[s] = static_cast<float>(sweep.weight(s));
    }
    for (std::uint32_t point = 0; point < sweep.points(); ++point) {
      if (stored[point]) continue;
      waiting_.push_back(point);
      total_ += weights[sweep.setting(point)];
    }
    // Points of one setting stay together: its scenario is read once.
    std::ranges::stable_sort(waiting_, [&](std::uint32_t a, std::uint32_t b) {
      return weights[sweep.setting(a)] > weights[sweep.setting(b)];
    });
  }

  [[nodiscard]] bool finished() const {
    return open_ == 0 && next_ == waiting_.size() && again_.empty();
  }
  [[nodiscard]] double share() const { return total_ > 0 ? done_ / total_ : 1; }

  // The next chunk for a worker that is about to run dry; empty when it is not, or nothing is left.
  std::vector<std::uint32_t> chunk(int worker) {
    Given& given = given_[worker];
    std::vector<std::uint32_t> points;
    if (given.points.size() > given.last_chunk) return points;
    const auto workers = static_cast<double>(given_.size());
    const double enough = std::min(total_ / (64 * workers), (total_ - done_) / (8 * workers));
    double weight = 0;
    while (points.size() < kMaxChunk && weight <= enough) {
      const auto point = next();
      if (!point) break;
      points.push_back(*point);
      weight += weight_of(*point);
    }
    given.points.insert(given.points.end(), points.begin(), points.end());
    given.last_chunk = points.size();
    open_ += points.size();
    return points;
  }

  void arrived(int worker, std::uint32_t point) {
    take(worker, point);
    done_ += weight_of(point);
  }

  // A worker has come back without its points: the first, if any, was in its hands.
  std::optional<std::uint32_t> died(int worker) {
    Given& given = given_[worker];
    std::optional<std::uint32_t> first;
    if (!given.points.empty()) first = given.points.front();
    open_ -= given.points.size();
    for (size_t i = 1; i < given.points.size(); ++i) again_.push_back(given.points[i]);
    given = {};
    return first;
  }

  // Takes a point from a worker that could not do it.
  void take(int worker, std::uint32_t point) {
    Given& given = given_[worker];
    if (given.points.empty() || given.points.front() != point) {
      throw LogicError("a worker answered for a point that it was not given");
    }
    given.points.pop_front();
    --open_;
  }
  void give_again(std::uint32_t point) { again_.push_back(point); }
  void give_up(std::uint32_t point) { done_ += weight_of(point); }

 private:
  struct Given {
    std::deque<std::uint32_t> points;
    size_t last_chunk = 0;
  };

  [[nodiscard]] double weight_of(std::uint32_t point) const {
    return static_cast<float>(sweep_.weight(sweep_.setting(point)));
  }

  std::optional<std::uint32_t> next() {
    if (!again_.empty()) {
      const std::uint32_t point = again_.front();
      again_.pop_front();
      return point;
    }
    if (next_ == waiting_.size()) return std::nullopt;
    return waiting_[next_++];
  }

  const Sweep& sweep_;
  std::vector<std::uint32_t> waiting_;  // largest first
  size_t next_ = 0;
  std::deque<std::uint32_t> again_;
  std::vector<Given> given_;
  size_t open_ = 0;
  double total_ = 0;
  double done_ = 0;
};

class Run {
 public:
  Run(const Sweep& sweep, ResultStore& store, Workers& workers, const SweepHooks& hooks)
      : store_(store),
        workers_(workers),
        hooks_(hooks),
        dispatch_(sweep, store.stored(), workers.count()) {
    run_.progress.points = sweep.points();
    run_.progress.before = static_cast<std::uint32_t>(std::ranges::count(store.stored(), true));
  }

  SweepRun operator()() {
    auto committed = std::chrono::steady_clock::now();
    size_t uncommitted = 0;
    while (!dispatch_.finished()) {
      if (hooks_.stopped()) {
        run_.stopped = true;
        break;
      }
      for (int worker = 0; worker < workers_.count(); ++worker) feed(worker);
      const auto events = workers_.wait(kWaitMilliseconds);
      for (const WorkerEvent& event : events) see(event);
      uncommitted += events.size();
      const auto now = std::chrono::steady_clock::now();
      if (uncommitted >= kCommitPoints ||
          std::chrono::duration<double>(now - committed).count() >= kCommitSeconds) {
        store_.commit();
        committed = now;
        uncommitted = 0;
        run_.progress.share = dispatch_.share();
        hooks_.progress(run_.progress);
      }
    }
    store_.commit();
    run_.progress.share = dispatch_.share();
    hooks_.progress(run_.progress);
    return std::move(run_);
  }

 private:
  void feed(int worker) {
    if (const auto points = dispatch_.chunk(worker); !points.empty()) workers_.give(worker, points);
  }

  void see(const WorkerEvent& event) {
    if (event.kind == WorkerEvent::Kind::kDied) {
      if (const auto point = dispatch_.died(event.worker)) failed(*point, event.text);
      return;
    }
    const PointResult result = point_from_bytes(event.text);
    if (result.outcome == PointResult::Outcome::kFault) {
      dispatch_.take(event.worker, result.point);
      failed(result.point, result.reason);
      return;
    }
    dispatch_.arrived(event.worker, result.point);
    store_.add(result);
    ++run_.progress.evaluated;
    hooks_.result(result);
  }

  void failed(std::uint32_t point, const std::string& why) {
    if (++tries_[point] < kTries) return dispatch_.give_again(point);
    dispatch_.give_up(point);
    run_.lost[point] = why + ", twice";
  }

  ResultStore& store_;
  Workers& workers_;
  const SweepHooks& hooks_;
  Dispatch dispatch_;
  std::map<std::uint32_t, int> tries_;
  SweepRun run_;
};

}  // namespace

SweepRun run_sweep(const Sweep& sweep, ResultStore& store, Workers& workers,
                   const SweepHooks& hooks) {
  return Run(sweep, store, workers, hooks)();
}

}  // namespace pipesim
