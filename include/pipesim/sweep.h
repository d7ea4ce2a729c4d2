// Every point of a sweep file (docs/how-to/sweep.md), simulated over processes of this machine and
// stored, so that a sweep that was stopped goes on.
#pragma once

#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/report/metrics/row.h"

namespace pipesim {

struct SweepPoint {
  std::vector<std::string> values;  // of SweepTable::keys, as the file writes them
  std::string schedule;
  // All else that was chosen, in words; `options` and `memory_limit` are empty where there is none.
  std::string options, recompute, offload, memory_limit;
  bool done = false;
  MetricRow metrics{};  // of one that is done: pipesim::metric(point.metrics, "iteration_seconds")
  std::string reason;   // why it is not
};

struct SweepTable {
  std::vector<std::string> keys;  // that the file sweeps
  std::vector<SweepPoint> points;
};

// `folder` keeps the results in results.sqlite and is made where it is not there; what stands in it
// of the same sweep is not simulated again. Forks `processes` at the call: make it before threads.
// InputError for the file and for a folder of another sweep.
SweepTable sweep_file(const std::string& file, const std::string& folder, int processes = 1,
                      const std::vector<std::string>& overrides = {});

}  // namespace pipesim
