// Times work on a stream with CUDA events: warm-up, batches of launches, order statistics.
//
// One repetition is a batch of launches between two events, long enough that the events' resolution
// (about half a microsecond) does not matter; its sample is the batch's time over its launches. A
// delay kernel ahead of the first event lets the host enqueue the batch before the device starts on
// it, however long a launch takes the host (those of many ranks' collectives), so that launches
// leave no gaps: what is timed is the device's work. The work is handed the
// running number of its launch, by which it rotates through buffers that exceed the L2 cache.
// Where a load runs ahead of batches, it takes the delay's place: what is timed then finds the
// clocks that the load leaves, as a kernel finds them among a layer's others. With a background,
// other work is kept on a second stream; a sample counts only if the background was running from
// before the first event until after the second. Units: microseconds. Errors: CudaError;
// MeasureError when the background never covered the work.
#pragma once

#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "validate/calibration/harness/card.h"
#include "validate/calibration/harness/cuda_resource.h"
#include "validate/calibration/measurements.h"

namespace pipesim::calibration {

class MeasureError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Enqueues one launch (or a fixed sequence of them) on a stream.
using Work = std::function<void(cudaStream_t stream, int launch)>;

// Told, ahead of launches, how many come next: for work in which other processes take part.
using Announce = std::function<void(int launches)>;

struct TimingSettings {
  double sample_target_us = 1000;  // a batch lasts about this long
  double budget_us = 40e3;         // of device time for one point, warm-up apart
  int minimum_repetitions = 7;
  int maximum_repetitions = 25;
};

// How many launches make a batch and how many batches are timed, from one launch's estimated time.
struct BatchPlan {
  int launches = 1;
  int repetitions = 1;
};
[[nodiscard]] BatchPlan plan_batches(const TimingSettings& settings, double estimate_us);

class Timer {
 public:
  Timer(const Card& card, TimingSettings settings) : card_(card), settings_(settings) {}

  // Fills time_us, samples_us, launches_per_repetition and state of `point`.
  void measure(Point& point, const Work& work, const Announce& announce = {});
  // The same, while each `background` keeps a stream of its own busy.
  void measure_with(Point& point, const Work& work, const std::vector<Work>& backgrounds);

  // Launches the work, one batch after the other, for so many seconds of the device's. The time of
  // a launch, in each batch.
  std::vector<double> keep_busy(const Work& work, double seconds);

  // The same work over and over, with nothing for a while before each of its runs. The first half
  // of the time, in which the card settles, does not count.
  struct Pauses {
    int launches = 1;
    double pause_us = 0;
    double seconds = 1;
  };
  void measure_with_pauses(Point& point, const Work& work, const Pauses& pauses);

  // From now on so much of `load` runs ahead of every batch that the host keeps ahead of the
  // device; with none, a delay again.
  void run_ahead(Work load);

  [[nodiscard]] const Stream& stream() const { return stream_; }

 private:
  [[nodiscard]] double estimate_us(const Stream& stream, const Work& work);
  void enqueue_batch(const Work& work, int launches);
  // That what stands ahead of a batch takes.
  [[nodiscard]] double lead_us(int launches) const;

  const Card& card_;
  TimingSettings settings_;
  Stream stream_;
  Event begin_, end_;
  int launch_ = 0;
  double host_us_ = 0;  // that the host took for a launch of the latest work
  Work load_;
  double load_us_ = 0;  // of one launch
};

// A load that runs ahead while this lives.
class RunsAhead {
 public:
  RunsAhead(Timer& timer, Work load) : timer_(timer) { timer.run_ahead(std::move(load)); }
  RunsAhead(const RunsAhead&) = delete;
  RunsAhead& operator=(const RunsAhead&) = delete;
  ~RunsAhead() { timer_.run_ahead({}); }

 private:
  Timer& timer_;
};

}  // namespace pipesim::calibration
