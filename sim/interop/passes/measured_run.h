// Measures of a recorded run: seconds of every stage's passes, gaps, messages and clocks. The
// simulation of the same order is held against the run's own time.
//
// Clocks: the quickest messages each way between two ranks bound the clocks' difference. Equal
// times both ways are assumed to settle it (as in NTP). Each iteration has its own differences.
//
// Passes: one that takes more than 1.5 times the median of its stage and kind has stalled; it is
// named and left out of means. The first forward and the last backward of a stage in an iteration
// (start-up, gradients handed on) are left out too. Their excess is the opening and the closing of
// an iteration. O(passes log passes).
#pragma once

#include <optional>
#include <vector>

#include "sim/core/enum_array.h"
#include "sim/interop/passes/recorded_run.h"
#include "sim/scenario/measured_passes.h"

namespace pipesim {

struct MeasuredKind {
  int count = 0;      // that the mean is of
  double mean = 0;    // seconds
  double spread = 0;  // standard deviation
  double launch = 0;  // gap before the pass where it waits for no message
};

struct Stall {
  int iteration = 0;
  int rank = 0;
  RecordedPass pass;
  double usual = 0;  // median of its stage and kind
};

struct RankSummary {
  size_t passes = 0;   // of an iteration
  size_t missing = 0;  // in iterations that were left out
  size_t stalled = 0;  // in iterations that count
  double clock = 0;    // ahead of rank 0, median of the iterations; 0 where there is no clock
};

// Seconds of an iteration's passes, first start to last end, by the parts that count.
struct SimulatedRun {
  double passes = 0;         // a mean for each stage and kind, and nothing else
  double with_messages = 0;  // and messages
  double with_launches = 0;  // and launches
  double by_stage = 0;       // and the first and last passes: what a scenario of the run gives
  double by_pass = 0;        // each pass of each microbatch by its own mean, messages and launches
};

struct RunMeasures {
  std::vector<EnumArray<PassKind, MeasuredKind>> stages;  // of the model, in forward order
  std::vector<RankSummary> ranks;
  std::vector<Stall> stalls;
  double message = 0;
  double opening = 0;
  double closing = 0;
  // Over the iterations that count; 0 where there is no clock.
  double median_seconds = 0;
  double mean_seconds = 0;
  std::optional<SimulatedRun> simulated;
};

RunMeasures measure(const RecordedRun& run);

// The passes in the form that a scenario which names the file reads.
MeasuredPasses passes_of(const RecordedRun& run, const RunMeasures& measured);

}  // namespace pipesim
