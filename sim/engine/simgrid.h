// The engine in which links are shared: SimGrid's max-min model, run in a process of its own.
//
// Messages share the one-way resources of their route (models/cluster.h) while they flow; their
// latency passes before. The graph runs in a forked child that loads SimGrid, so that its
// process-wide engine never meets the caller's memory, threads or files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/engine/engine.h"

namespace pipesim {

enum class GpuModel {
  kTimer,  // an undisturbed clock: compute takes its seconds
  kHost,   // a SimGrid host: compute is an execution that messages, speed profiles and power see
};

// From `at` on, the GPU of `rank` runs at `factor` of its speed.
struct SpeedChange {
  int rank = 0;
  double at_seconds = 0;
  double factor = 1;
};

struct SimGridOptions {
  GpuModel gpu = GpuModel::kTimer;
  std::vector<SpeedChange> speed_profile = {};  // kHost only; in order of time per rank
  int processes = 1;                            // runs of an ensemble at the same time
};

std::unique_ptr<Engine> make_simgrid_engine(SimGridOptions options = {});

}  // namespace pipesim
