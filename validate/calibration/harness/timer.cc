#include "validate/calibration/harness/timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "validate/calibration/harness/kernels.h"

namespace pipesim::calibration {
namespace {

constexpr int kWarmUps = 3;
constexpr int kEstimated = 3;
constexpr int kMaximumLaunches = 200;
constexpr double kHostLaunchUs = 8;   // host time that one launch may take, or as measured,
constexpr double kHostSurplus = 1.5;  // times this
constexpr double kMaximumDelayUs = 50e3;
constexpr double kLoadUs = 2e3;            // at least so much of a load stands ahead of a batch
constexpr double kSettled = 0.5;           // of a time with pauses, from here on it counts
constexpr double kBackgroundFactor = 1.5;  // of the work's expected time
constexpr double kBackgroundGrowth = 1.6;  // when it ended too early
constexpr int kMaximumBackgroundLaunches = 20000;

// Work on a stream of its own, with the events that prove when it ran.
struct Background {
  Work work;
  Stream stream;
  Event begin, end;
  double launch_us = 0;
  int launch = 0;

  // Enqueues `duration_us` of the work between two events.
  void start(double duration_us) {
    const int count = std::clamp(static_cast<int>(std::ceil(duration_us / launch_us)), 1,
                                 kMaximumBackgroundLaunches);
    begin.record(stream);
    for (int i = 0; i < count; ++i) work(stream.get(), launch++);
    end.record(stream);
  }
};

double delay_us(int launches, double host_us) {
  const double each = std::max(kHostLaunchUs, kHostSurplus * host_us);
  return std::min(kMaximumDelayUs, each * static_cast<double>(launches + 2));
}

void delay(const Stream& stream, double microseconds) {
  kernels::delay(static_cast<uint64_t>(microseconds * 1e3), stream.get());
}

}  // namespace

BatchPlan plan_batches(const TimingSettings& settings, double estimate_us) {
  const double launch = std::max(estimate_us, 0.1);
  const int launches = std::clamp(static_cast<int>(std::lround(settings.sample_target_us / launch)),
                                  1, kMaximumLaunches);
  const double batch = launch * static_cast<double>(launches);
  const int affordable = static_cast<int>(settings.budget_us / batch);
  return {launches,
          std::clamp(affordable, settings.minimum_repetitions, settings.maximum_repetitions)};
}

double Timer::estimate_us(const Stream& stream, const Work& work) {
  for (int i = 0; i < kWarmUps; ++i) work(stream.get(), launch_++);
  stream.synchronize();
  delay(stream, delay_us(kEstimated, 0));
  const auto start = std::chrono::steady_clock::now();
  begin_.record(stream);
  for (int i = 0; i < kEstimated; ++i) work(stream.get(), launch_++);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  host_us_ = took.count() / kEstimated;
  end_.record(stream);
  end_.synchronize();
  return end_.microseconds_since(begin_) / kEstimated;
}

std::vector<double> Timer::keep_busy(const Work& work, double seconds) {
  const BatchPlan batches = plan_batches(settings_, estimate_us(stream_, work));
  std::vector<double> times;
  for (double left = seconds * 1e6; left > 0; left -= end_.microseconds_since(begin_)) {
    enqueue_batch(work, batches.launches);
    end_.synchronize();
    times.push_back(end_.microseconds_since(begin_) / static_cast<double>(batches.launches));
  }
  return times;
}

void Timer::run_ahead(Work load) {
  load_us_ = load ? estimate_us(stream_, load) : 0;
  load_ = std::move(load);
}

double Timer::lead_us(int launches) const {
  const double wanted = delay_us(launches, host_us_);
  if (!load_) return wanted;
  return load_us_ * std::ceil(std::max(wanted, kLoadUs) / load_us_);
}

void Timer::enqueue_batch(const Work& work, int launches) {
  if (load_) {
    const auto loads = std::lround(lead_us(launches) / load_us_);
    for (long i = 0; i < loads; ++i) load_(stream_.get(), launch_++);
  } else {
    delay(stream_, lead_us(launches));
  }
  begin_.record(stream_);
  for (int i = 0; i < launches; ++i) work(stream_.get(), launch_++);
  end_.record(stream_);
}

void Timer::measure(Point& point, const Work& work, const Announce& announce) {
  if (announce) announce(kWarmUps + kEstimated);
  const BatchPlan batches = plan_batches(settings_, estimate_us(stream_, work));
  if (announce) announce(batches.launches * batches.repetitions);
  point.launches_per_repetition = batches.launches;
  point.samples_us.clear();
  const auto launches = static_cast<double>(batches.launches);
  for (int repetition = 0; repetition < batches.repetitions; ++repetition) {
    enqueue_batch(work, batches.launches);
    // Read while the batch runs: after it, the clocks already fall.
    if (repetition == batches.repetitions / 2) point.state = card_.state();
    end_.synchronize();
    point.samples_us.push_back(end_.microseconds_since(begin_) / launches);
  }
  point.time_us = summarize_times(point.samples_us);
}

void Timer::measure_with_pauses(Point& point, const Work& work, const Pauses& pauses) {
  (void)estimate_us(stream_, work);
  point.launches_per_repetition = pauses.launches;
  point.samples_us.clear();
  const double all_us = pauses.seconds * 1e6;
  for (double passed = 0; passed < all_us;) {
    if (pauses.pause_us > 0) delay(stream_, pauses.pause_us);
    begin_.record(stream_);
    for (int i = 0; i < pauses.launches; ++i) work(stream_.get(), launch_++);
    end_.record(stream_);
    const bool settled = passed >= kSettled * all_us;
    if (settled && !point.state) point.state = card_.state();
    end_.synchronize();
    const double busy = end_.microseconds_since(begin_);
    passed += pauses.pause_us + busy;
    if (settled) point.samples_us.push_back(busy / static_cast<double>(pauses.launches));
  }
  point.time_us = summarize_times(point.samples_us);
}

void Timer::measure_with(Point& point, const Work& work, const std::vector<Work>& backgrounds) {
  std::vector<std::unique_ptr<Background>> running;
  for (const Work& background : backgrounds) {
    running.push_back(std::make_unique<Background>());
    running.back()->work = background;
    running.back()->launch_us = estimate_us(running.back()->stream, background);
  }
  const BatchPlan batches = plan_batches(settings_, estimate_us(stream_, work));
  const double alone_us = estimate_us(stream_, work) * static_cast<double>(batches.launches);
  point.launches_per_repetition = batches.launches;
  point.samples_us.clear();
  const auto launches = static_cast<double>(batches.launches);
  double stretch = kBackgroundFactor;
  for (int attempt = 0; attempt < 3 * batches.repetitions &&
                        static_cast<int>(point.samples_us.size()) < batches.repetitions;
       ++attempt) {
    const double lead = lead_us(batches.launches);
    for (auto& background : running) background->start(stretch * (alone_us + lead));
    enqueue_batch(work, batches.launches);
    if (static_cast<int>(point.samples_us.size()) == batches.repetitions / 2) {
      point.state = card_.state();
    }
    end_.synchronize();
    for (auto& background : running) background->stream.synchronize();
    const bool covered = std::ranges::all_of(running, [&](const auto& background) {
      return begin_.microseconds_since(background->begin) >= 0 &&
             background->end.microseconds_since(end_) >= 0;
    });
    if (covered) {
      point.samples_us.push_back(end_.microseconds_since(begin_) / launches);
    } else {
      stretch *= kBackgroundGrowth;
    }
  }
  if (static_cast<int>(point.samples_us.size()) <
      std::min(settings_.minimum_repetitions, batches.repetitions)) {
    throw MeasureError("the background did not last as long as the work");
  }
  point.time_us = summarize_times(point.samples_us);
}

}  // namespace pipesim::calibration
