// Every point of a sweep file (docs/how-to/sweep.md), simulated over processes of this machine and
// stored, so that a sweep that was stopped goes on.
#pragma once

#include <pipesim/metrics.h>
#include <pipesim/scenario.h>
#include <string>
#include <vector>

namespace pipesim::api {

struct SweepPoint {
  std::vector<std::string> values;  // of Sweep::keys, as the file writes them
  std::string schedule, options, recompute, offload, memory_limit;
  bool done = false;
  Metrics metrics;     // of one that is done
  std::string reason;  // why it is not
};

struct Sweep {
  std::vector<std::string> keys;  // that the file sweeps
  std::vector<SweepPoint> points;
  std::string json;  // the document of `pipesim sweep --json`
};

// `folder` keeps the results in results.sqlite and is made where it is not there. Points that it
// has of the same sweep are not simulated again. Forks `processes` at the call: make it before
// threads. Error for the file and for a folder of another sweep. `watch.progress` counts points.
Sweep sweep_file(const std::string& file, const std::string& folder, int processes = 1,
                 const Changes& changes = {}, const Watch& watch = {});

}  // namespace pipesim::api
