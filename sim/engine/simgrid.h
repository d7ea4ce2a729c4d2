// The engine in which links are shared: SimGrid's max-min model, run in processes of its own.
//
// Messages share the one-way resources of their route (models/cluster.h) while they flow; their
// latency passes before and shares nothing. Timeline::shared_links says whether two ever flowed
// over one resource for more than an instant (1e-12 of the clock). SimGrid is loaded by a process
// forked at the first run (simgrid_process.h), so that its process-wide engine never meets the
// caller's memory, threads or files. A run costs 2 ms and some 1 to 2 microseconds per task.
// A run in which nothing meets anything, so that SimGrid would find every task where replay has it,
// is replayed instead, many times as fast; GPUs that are hosts and lose shares to messages,
// change speed or have their energy counted are always SimGrid's.
// Besides what engine.h says: InfeasibleError when a GPU that stands still for good leaves tasks
// unfinished. LogicError for durations that are no times, and for faults of SimGrid, with its
// words.
#pragma once

#include <memory>
#include <vector>

#include "models/gpu_model.h"
#include "sim/engine/engine.h"

namespace pipesim {

struct SimGridOptions {
  GpuModel gpu = GpuModel::kTimer;
  std::vector<SpeedChange> speed_profile = {};  // kHost only; of ranks not in the graph: ignored
  int processes = 1;                            // runs of `run_all` at the same time
  bool replay_undisturbed = true;               // false: SimGrid runs what nothing meets in, too
};

// True if this build has the engine (PIPESIM_SIMGRID).
bool has_simgrid();

// LogicError for options without a meaning; InfeasibleError where there is none.
std::unique_ptr<Engine> make_simgrid_engine(SimGridOptions options = {});

}  // namespace pipesim
