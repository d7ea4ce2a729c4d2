// From a case to its result: program, task graph, timeline and metrics.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/case/case.h"
#include "sim/case/node_memory.h"
#include "sim/case/reuse.h"
#include "sim/case/throughput.h"
#include "sim/engine/engine.h"
#include "sim/graph/task_graph.h"
#include "sim/graph/timeline.h"
#include "sim/metrics/report.h"
#include "sim/pipeline/program.h"

namespace pipesim {

// Wall-clock seconds of the steps, for `--timings`.
struct StepSeconds {
  double plan = 0;
  double build = 0;
  double run = 0;
  double metrics = 0;
};

// How much a result is to say, each with all that is before it.
enum class Detail : std::uint8_t {
  kNumbers,   // what follows from sums by device; all else may be left out
  kTimeline,  // graph and timeline too
  kCauses,    // idle_by_cause, peak_time and peak_pass too
};

struct Result {
  std::shared_ptr<const Program> program;
  std::shared_ptr<const TaskGraph> graph;  // none where numbers alone were asked for
  Timeline timeline;  // of an ensemble: of its first run; empty where numbers alone were asked for
  Report report;
  std::optional<Throughput> throughput;
  std::optional<MemoryFit> fits;   // the peak into the scenario's capacity, if any
  std::optional<HostMemory> host;  // where something waits on the host
  StepSeconds seconds;
};

// The engine that the scenario names. Under SimGrid, runs of an ensemble go `processes` at a time.
std::unique_ptr<Engine> make_engine(const Scenario& scenario, int processes);

// Simulates a case. Where iterations overlap (post-validation, and schedules that never drain, with
// one program for all iterations), iterations run until they settle. At most 64 run, or 4 times
// those that fill the pipeline. Otherwise every iteration starts afresh and one is the steady
// state. Jitter, or messages or copies that shared a link, make the result an ensemble. Every
// draw that `Case::redrawn` makes is simulated too. `engine` comes from make_engine; without one it
// is made for the call. `reuse` keeps parts of simulations for later ones. Throws InputError (a
// schedule that does not accept the shape) and InfeasibleError (a memory limit, a deadlock of the
// program or of blocking transfers).
Result simulate(const Case& made, const Engine* engine = nullptr, Reuse* reuse = nullptr,
                Detail detail = Detail::kCauses);

// The result or exception of `simulate`.
struct Simulated {
  std::optional<Result> result;
  std::exception_ptr error;

  // Throws the error.
  [[nodiscard]] const Result& get() const {
    if (error) std::rethrow_exception(error);
    return *result;
  }
};

// Simulates all cases for their numbers. Cases of one program and structure (renumber.h) are lanes
// of one evaluation, if the engine is `replay` and nothing is left to chance.
std::vector<Simulated> simulate_all(std::span<const Case> cases, Reuse& reuse);

}  // namespace pipesim
