// The walk of a value: Scenario -> Problem -> Program -> TaskGraph -> Timeline -> Report.
#pragma once

#include <memory>
#include <optional>

#include "sim/case/host_links.h"
#include "sim/engine/engine.h"
#include "sim/graph/task_graph.h"
#include "sim/graph/timeline.h"
#include "sim/metrics/report.h"
#include "sim/pipeline/problem.h"
#include "sim/scenario/scenario.h"

namespace pipesim {

// Wall-clock seconds of the steps, for `--timings`.
struct StepSeconds {
  double plan = 0;
  double build = 0;
  double run = 0;
  double metrics = 0;
};

// What can be said per second, where the batch is known.
struct Throughput {
  double samples_per_second = 0;
  double samples_per_second_per_gpu = 0;
  // With a model and a named cluster. `hfu` counts forwards that are run again; not known under
  // selective recomputation.
  std::optional<double> model_tflops_per_gpu = {};
  std::optional<double> mfu = {};
  std::optional<double> hfu = {};
};

// Whether the peak is within the scenario's capacity, and what would bring it there.
struct Fit {
  bool fits = true;
  std::optional<MemoryChange> change = {};
};

struct Simulation {
  Problem problem;
  std::shared_ptr<const Program> program;
  std::unique_ptr<TaskGraph> graph;
  Timeline timeline;  // of an ensemble: of its first run
  Report report;
  std::optional<Throughput> throughput;
  std::optional<Fit> fit;          // where a capacity is given
  std::optional<HostMemory> host;  // where activations wait on the host
  StepSeconds seconds;
};

// The calls in which transfers hold the choice's devices. Empty when they overlap compute: because
// the scenario says so, or because the schedule's runtime is asynchronous (Schedule::calls). A
// program from a CSV file names no framework: one call before every pass.
std::optional<CallGroups> blocking_calls(const Scenario& scenario, const ScheduleChoice& choice);

// The engine that the scenario names. Under SimGrid, runs of an ensemble go `processes` at a time.
std::unique_ptr<Engine> make_engine(const Scenario& scenario, int processes);

// For callers of many simulations; what is reported is the same.
struct SimulateOptions {
  const Engine* engine = nullptr;  // as make_engine makes it; without one, it is made for the call
  // Whether to look for Fit::change and HostMemory::nearest, which plan anew for each try.
  bool look_for_change = true;
};

// Simulates one schedule of the scenario. Under post-validation, whose iterations overlap, as many
// are simulated as it takes to settle (at most 64); otherwise every iteration starts afresh and one
// is the steady state. Jitter, or messages or copies that shared a link, make the result an
// ensemble. Where hosts lack memory, less offload is simulated until it suffices. Throws
// InputError (a schedule that does not accept the shape) and InfeasibleError (a deadlock, of
// the program or of blocking transfers).
Simulation simulate(const Scenario& scenario, const ScheduleChoice& choice,
                    const SimulateOptions& options = {});

}  // namespace pipesim
