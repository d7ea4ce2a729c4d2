// Puts passes into time as a planner names them: what planners of F, B and W share.
//
// A planner says which pass a device runs next. The player starts it at the device's clock and
// keeps what follows: arrivals, passes run, owed W, memory, idle time, lists.
//   - F and B of a chunk run in order of microbatches, W of a device in the order of its B.
//   - A pass may be named once its input has been sent; nothing checks that. Devices may otherwise
//     run in any order, since each has a clock of its own.
//   - A device's bytes follow from its counts, so that rounding does not pile up.
//
// A copy is a moment to go back to. One direction, no splits, no fused BW. Deterministic. O(1) per
// pass, without allocation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/grid.h"
#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/plan_time.h"

namespace pipesim {

class Player {
 public:
  // One chunk of a device: what its passes cost, and how many have run.
  struct Chunk {
    double forward = 0, backward = 0, weight = 0;
    double to_downstream = 0, to_upstream = 0;  // messages
    double activation = 0, weight_stash = 0;
    int device = 0, number = 0;
    int upstream = -1, downstream = -1;  // rows; the last stage follows itself
    int row = 0;
    int microbatches = 0;
    int f = 0, b = 0, w = 0;

    [[nodiscard]] double held() const {
      return f * activation - b * (activation - weight_stash) - w * weight_stash;
    }
    // Once the W have run that are owed.
    [[nodiscard]] double held_without_owed() const { return (f - b) * activation; }
  };

  struct Device {
    double work = 0;        // seconds of all its passes
    double spare = 0;       // idle seconds that do not count: a planner's choice, before `reset`
    double least_span = 0;  // work and spare
    double clock = 0;
    double first_start = 0;
    double idle = 0;  // since the first pass, less what it has to spare
    int b = 0, w = 0;
    bool started = false;

    [[nodiscard]] int owed() const { return b - w; }  // W
  };

  // Times are what `unit` makes of the problem's seconds.
  using Unit = double (*)(Seconds);
  Player(const Problem& problem, Unit unit);

  // Takes the seconds of messages from another problem of the same shape.
  void set_messages(const Problem& problem);
  void reset();

  [[nodiscard]] int devices() const { return static_cast<int>(devices_.size()); }
  [[nodiscard]] Device& device(int d) { return devices_[d]; }
  [[nodiscard]] const Device& device(int d) const { return devices_[d]; }
  [[nodiscard]] Chunk& chunk(int d, int number) { return chunks_[d * columns_ + number]; }
  [[nodiscard]] const Chunk& chunk(int d, int number) const {
    return chunks_[d * columns_ + number];
  }
  // The same number on every device; chunks that it lacks have no microbatches.
  [[nodiscard]] std::span<const Chunk> chunks(int d) const { return {&chunk(d, 0), columns_}; }
  [[nodiscard]] Chunk& at_row(int row) { return chunks_[row]; }
  [[nodiscard]] const Chunk& at_row(int row) const { return chunks_[row]; }
  [[nodiscard]] PassLists& lists() { return lists_; }

  [[nodiscard]] double held(int d) const {
    double sum = 0;
    for (const Chunk& chunk : chunks(d)) sum += chunk.held();
    return sum;
  }

  // True if the input of the chunk's next pass is there or on its way.
  [[nodiscard]] bool forward_sent(const Chunk& chunk) const {
    return chunk.f < (chunk.upstream < 0 ? chunk.microbatches : chunks_[chunk.upstream].f);
  }
  [[nodiscard]] bool backward_sent(const Chunk& chunk) const {
    return chunk.b < (chunk.downstream == chunk.row ? chunk.f : chunks_[chunk.downstream].b);
  }
  // When it comes, if it has been sent.
  [[nodiscard]] double forward_arrival(const Chunk& chunk) const {
    return chunk.upstream < 0 ? kNoWait : arrival_(chunk.row, chunk.f);
  }
  [[nodiscard]] double backward_arrival(const Chunk& chunk) const {
    return arrival_(chunk.row, chunk.b);
  }

  // The device idles up to `time`, unless it is busy for longer.
  void wait_until(int d, double time) {
    Device& device = devices_[d];
    const double start = std::max(device.clock, time);
    if (!device.started) {
      device.started = true;
      device.first_start = start;
    } else {
      device.idle += start - device.clock;
      most_idle_ = std::max(most_idle_, device.idle);
    }
    device.clock = start;
  }

  // The next pass of its kind, at the device's clock.
  void start_forward(Chunk& chunk) {
    const double end = start(chunk.device, chunk, PassKind::kF, chunk.f, chunk.forward);
    arrival_(chunk.downstream, chunk.f) = end + chunk.to_downstream;
    ++chunk.f;
  }
  void start_backward(Chunk& chunk) {
    const double end = start(chunk.device, chunk, PassKind::kB, chunk.b, chunk.backward);
    if (chunk.upstream >= 0) arrival_(chunk.upstream, chunk.b) = end + chunk.to_upstream;
    ++chunk.b;
    const int at = devices_[chunk.device].b++;
    if (columns_ > 1) backwards_(chunk.device, at) = static_cast<std::uint16_t>(chunk.number);
  }
  // Likewise, as soon as its input is there.
  void run_forward(Chunk& chunk) {
    wait_until(chunk.device, forward_arrival(chunk));
    start_forward(chunk);
  }
  void run_backward(Chunk& chunk) {
    wait_until(chunk.device, backward_arrival(chunk));
    start_backward(chunk);
  }
  // The W that the device has owed longest.
  [[nodiscard]] const Chunk& owed_longest(int d) const {
    return chunk(d, backwards_(d, devices_[d].w));
  }
  void run_weight(int d) {
    const int at = devices_[d].w++;
    Chunk& owes = chunk(d, columns_ == 1 ? 0 : backwards_(d, at));
    start(d, owes, PassKind::kW, owes.w++, owes.weight);
  }
  // Runs what is owed, and returns the plan's time.
  PlanTime finish();

  // The most of any device, as it is counted.
  [[nodiscard]] double most_idle() const { return most_idle_; }
  [[nodiscard]] double most_work() const;
  // A lower bound for the plan, once all devices have started.
  [[nodiscard]] PlanTime least_time() const {
    PlanTimer timer(objective_);
    for (const Device& device : devices_) {
      timer.add(device.first_start, device.first_start + device.least_span + device.idle);
    }
    return timer.time();
  }

 private:
  double start(int d, const Chunk& chunk, PassKind kind, int microbatch, double seconds) {
    const double end = devices_[d].clock += seconds;
    lists_[d].push_back(make_pass(kind, microbatch, chunk.number));
    return end;
  }

  Objective objective_;
  Unit unit_;
  std::size_t columns_;        // chunks of a device
  std::vector<Chunk> chunks_;  // by device and number
  std::vector<Device> devices_;
  // When the input of a microbatch's next pass comes, of F and then of B. By row of chunks; a row
  // is a cache line longer, so that 2^k microbatches do not share their sets.
  Grid<double> arrival_;
  Grid<std::uint16_t> backwards_;  // chunks in the order of B, by device; of one chunk unused
  double most_idle_ = 0;
  PassLists lists_;
};

}  // namespace pipesim
