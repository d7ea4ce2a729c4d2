// A lower bound on the time of every program of a placement under a limit on activation memory,
// from each device alone.
//
// For each device, the larger of
//   - its work and its unavoidable idle time. Between its first F and its first B only F can run,
//   and
//     no more than the limit holds (start). Between its last F of a chunk and that microbatch's B,
//     only microbatches in flight can run, no more than the limit holds (drain). The two stretches
//     are disjoint and both count where not every F can run before the first B;
//   - the bytes times seconds that its microbatches must hold, over the limit.
// Units of unequal cost count with the seconds and bytes of the cheapest, and with their own in
// each device's work. A microbatch's B waits for the way down to the last stage and back, with no
// wait on it. A higher limit never raises the bound. O(devices x chunks^2 + stages).
#pragma once

#include <vector>

#include "sim/pipeline/problem.h"
#include "sim/planning/plan_time.h"
#include "sim/planning/schedule.h"

namespace pipesim {

// Seconds along the pipeline when nothing waits, by model stage.
struct StageWays {
  explicit StageWays(const Problem& problem);

  std::vector<double> back;   // from the end of F to the start of B
  std::vector<double> start;  // of F, from the start of the first stage's F
};

struct DeviceBoundParts {
  Seconds seconds;
  int device = 0;  // whose time it is
  Seconds work;    // of that device in the bound, blocks as short as they may be
  Seconds drain;   // of its idle time in that bound, what comes after the last F of a chunk
};

// A makespan also counts the way of the first F to the device.
DeviceBoundParts parts_of_device_bound(const Problem& problem, Bytes limit, Objective objective);

// The same of programs with overlapped blocks. Each F saves as much as any block with it; an F
// before the first B runs alone and saves nothing. Units cost alike.
DeviceBoundParts parts_of_paired_bound(const Problem& problem, Bytes limit, Objective objective);

// By the problem's objective, or by another.
Seconds bound_of_devices(const Problem& problem, Bytes limit);
Seconds bound_of_devices(const Problem& problem, Bytes limit, Objective objective);

// Lower bounds of both times that plans are compared by, in the unit of the problem's seconds.
PlanTime least_plan_time(const Problem& problem, Bytes limit);

// The same of the schedule's order, from the peak that it claims: known before it is planned. 0
// where it claims none.
PlanTime bound_of_claimed_peak(const Schedule& schedule, const Problem& problem);

}  // namespace pipesim
