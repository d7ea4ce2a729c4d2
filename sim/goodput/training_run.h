// A whole training run with failures, checkpoints, restarts and slow nodes.
//
// Failures and slow nodes come as Poisson processes. A failure loses the work since the last
// checkpoint. The run goes on when another node has replaced the failed one and `restart` has
// passed; a failure within that time starts it over. A slow node slows every iteration until it is
// found; then the run starts again from a checkpoint that is written for it.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/core/units.h"

namespace pipesim {

struct InterruptedRun {
  Seconds work = {};        // of training where nothing fails
  double failure_rate = 0;  // of the run, per second
  double slow_rate = 0;
  double slow_factor = 1;
  Seconds slow_found = {};
  Seconds checkpoint = {};  // to write one; training waits
  Seconds interval = {};    // of work between two
  Seconds restart = {};
  Seconds repair = {};
  std::optional<int> spare_nodes = {};
};

// Where the time goes; the terms sum to the run's.
struct RunTime {
  Seconds training;     // what is kept
  Seconds checkpoints;  // also those cut short
  Seconds lost;         // training that a failure undid
  Seconds restarts;
  Seconds waiting;  // for a node, all spare ones being in repair
  Seconds slow;     // what slow nodes added
  int failures = 0;
  int slow_nodes = 0;

  [[nodiscard]] Seconds total() const {
    return training + checkpoints + lost + restarts + waiting + slow;
  }
};

// Events of the seed. They are the same for every interval and restart, so that two settings are
// compared under the same luck as far as it goes. Throws InfeasibleError for a run that would see
// over ten million failures. O(failures + checkpoints).
RunTime simulate_run(const InterruptedRun& run, std::uint64_t seed);

// The checkpoints and failures that such a run has on average, by Daly's model of an interval (FGCS
// 2006, eq. 20). Infinite where failures hardly let one end.
double expected_steps(const InterruptedRun& run);

// The interval between checkpoints that keeps the expected time short, with M the mean time between
// failures; infinite without failures. To first order: sqrt(2 C M) (Young, CACM 1974). To higher
// order (Daly, FGCS 2006, eq. 37): M where a checkpoint takes over 2 M.
Seconds young_interval(Seconds checkpoint, double failure_rate);
Seconds daly_interval(Seconds checkpoint, double failure_rate);

}  // namespace pipesim
