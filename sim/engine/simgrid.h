// The engine in which links are shared: SimGrid's max-min model, run in processes of its own.
//
// Messages share the one-way resources of their route (models/cluster.h) while they flow; their
// latency passes before and shares nothing. Timeline::shared_links says whether two ever flowed
// over one resource for more than an instant (1e-12 of the clock). SimGrid is loaded by a process
// forked at the first run (simgrid_process.h), so that its process-wide engine never meets the
// caller's memory, threads or files; the module is ../lib/pipesim/simgrid-engine.so from the
// executable. A run costs 2 ms and some 1 to 2 microseconds per task. Besides what engine.h says:
// InfeasibleError when a GPU that stands still for good leaves tasks unfinished, LogicError for
// durations that are no times and for faults of SimGrid, with its words.
#pragma once

#include <memory>
#include <vector>

#include "sim/engine/engine.h"

namespace pipesim {

enum class GpuModel {
  kTimer,  // an undisturbed clock: compute takes its seconds
  // A SimGrid host: compute is an execution that messages, speed profiles and power see.
  //
  // While messages flow out of a GPU they take Cluster::message_share of it from compute, while
  // messages flow in they take it again; several in one direction take it once, because they share
  // the copy engine as they share the link. What they take is a share of the speed that the GPU has
  // at the time. Compute keeps at least a millionth. Energy: idle power for the time until the last
  // task ends, and the difference to busy power for the share of that time that the GPU is used, by
  // compute or messages.
  kHost,
};

// From `at_seconds` on, the GPU of `rank` runs at `factor` of its speed; 0 stops it.
struct SpeedChange {
  int rank = 0;
  double at_seconds = 0;
  double factor = 1;
};

struct SimGridOptions {
  GpuModel gpu = GpuModel::kTimer;
  std::vector<SpeedChange> speed_profile = {};  // kHost only; of ranks not in the graph: ignored
  int processes = 1;                            // runs of `run_all` at the same time
};

// LogicError for options without a meaning.
std::unique_ptr<Engine> make_simgrid_engine(SimGridOptions options = {});

}  // namespace pipesim
