// How long a training run takes with all that interrupts it, what it costs, and where the time goes
// (docs/how-to/goodput.md).
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sim/case/simulate.h"
#include "sim/goodput/training_run.h"
#include "sim/scenario/reliability.h"

namespace pipesim {

struct GoodputQuestion {
  double tokens = 0;
  int runs = 200;  // each with a seed of its own, from `seed` on
  std::uint64_t seed = 1;
  std::optional<double> price_per_gpu_hour = {};
  double max_steps = 4e9;  // checkpoints and failures of all runs; more are refused
  // After each run, with the share of the expected steps that is done.
  std::function<void(double)> progress = [](double) {};
};

// Joules of all GPUs at the GPU's power: busy in passes that are kept, idle within iterations by
// cause, and outside of training. Spare nodes count as off.
struct GoodputEnergy {
  double busy = 0;
  std::array<double, kIdleCauseNames.size()> idle{};
  double repeated = 0;  // work that failures undid, and what slow nodes added
  double stopped = 0;   // checkpoints, restarts, waiting

  [[nodiscard]] double total() const;
};

struct Goodput {
  std::string name;
  int gpus = 0;
  int nodes = 0;
  InterruptedRun run;  // with the interval that was used
  Bytes checkpoint_size;
  Seconds mean_between_failures;  // infinite without any
  std::optional<Seconds> young = {}, daly = {};
  bool interval_searched = false;
  RunTime mean;           // of the runs, term by term
  double failures = 0;    // likewise
  Seconds p05, p50, p95;  // of a run's whole time
  double goodput = 0;     // training over all, of the means
  double gpu_hours = 0;   // spare nodes included
  std::optional<double> price = {};
  std::optional<GoodputEnergy> energy = {};  // where the GPU's power is known
};

// Requires a result with a throughput in tokens. InfeasibleError where neither the model nor
// `reliability` gives the state's size. Also for a run that failures never let end, and before work
// of more than `max_steps`.
Goodput goodput_of(const Case& made, const Result& result, const Reliability& reliability,
                   const GoodputQuestion& question);

}  // namespace pipesim
