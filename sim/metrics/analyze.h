// From a timeline to the report's numbers. Everything reported is derived here and in memory.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/gpu_model.h"
#include "sim/graph/device_times.h"
#include "sim/graph/task_graph.h"
#include "sim/graph/timeline.h"
#include "sim/metrics/report.h"

namespace pipesim {

// Choice to follow idle seconds back to their causes: most of the work where passes differ.
enum class IdleCauses : std::uint8_t { kFollowed, kLeftOut };

// Analyses the middle iteration of the graph.
//
// The period of a device runs from its first pass to its first pass of the next iteration. A single
// iteration must end in a collective of all devices; its period runs from time 0 to the end of
// that. `Report::iteration` is the longest of them; settled, all are equal.
//
// Idle seconds of a device are charged to causes that sum to them. A gap before the first B is
// warm-up, one after the last F cool-down. Any other is followed back along its inputs, messages
// and compute upstream, each of which took its part of it. `speeds`, by rank in order of time, are
// left out of the graph's seconds: they decide which stage is slower. Where causes are left out,
// `idle_by_cause` does not sum to idle seconds, and all else is the same. One loop over the tasks
// plus those chains, allocating per device only.
Report analyze(const TaskGraph& graph, const Timeline& timeline,
               std::span<const SpeedChange> speeds = {}, IdleCauses causes = IdleCauses::kFollowed);

// True if all devices have the same period to `relative`. With fewer iterations than the pipeline
// needs to settle they have not. Always true with one iteration.
bool is_steady(const TaskGraph& graph, const Timeline& timeline, double relative);

// The same numbers without a timeline, from the times of one iteration's tasks and its peaks of
// activations by device. Idle causes and the place of peaks are missing. Where there are copies to
// the host memory depends on when passes run: the peaks must say. O(devices).
Report numbers_of(size_t tasks, std::span<const DeviceTimes> times, std::span<const Bytes> peaks);

// By device, the most that activations take of its memory where tasks of a class acquire and
// release what `classes` say. Requires a graph without copies. O(tasks).
std::vector<Bytes> peaks_in_order(const TaskGraph& graph, std::span<const TaskClass> classes);

// Peaks of one graph, kept for the next time that its classes have the same bytes.
class KeptPeaks {
 public:
  const std::vector<Bytes>& of(const TaskGraph& graph, std::span<const TaskClass> classes);

 private:
  struct ClassBytes {
    Bytes acquired, released;
    friend bool operator==(const ClassBytes&, const ClassBytes&) = default;
  };
  std::vector<ClassBytes> bytes_;
  std::vector<Bytes> peaks_;
};

// One report for several runs of the same graph: every time and rate is the mean, `ensemble` holds
// the spread of the period. Percentiles interpolate linearly between order statistics.
Report ensemble_of(std::span<const Report> runs, std::uint64_t seed, double jitter);

}  // namespace pipesim
