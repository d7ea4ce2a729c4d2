// The fastest layouts of a model on so many GPUs, of all that plan_space names and that fit.
//
// Best first: points wait in the order of their lower bound on iteration time (bound.h). The
// one in front gets a sharper bound and waits again (what offloads, also a run without, which no
// copy can shorten), or is run by replay, as `pipesim run` does; when the least bound left is no
// better than the last of the layouts that are asked for, no point left is. So nothing better is
// lost: `exhaustive` runs every point and finds the same. What cannot fit by its bound on memory is
// not run. Tight layouts stand, and wait, behind those that fit. Ties go to the earlier point. A
// layout that offloads beside its schedule is left out where it fits without.
//
// Results do not depend on the number of threads: a fixed number of points is looked at at a time.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sim/layouts/outcome.h"
#include "sim/layouts/space.h"

namespace pipesim {

struct PlanCounts {
  size_t points = 0;
  size_t refused = 0;    // by their schedule
  size_t too_large = 0;  // by the bound on memory
  size_t too_slow = 0;   // by the bound on time
  size_t repeated = 0;   // layers stand as in another point, or offload where there is room
  size_t evaluated = 0;
  size_t unfit = 0;  // of those, took more memory than there is
  size_t tight = 0;  // of those, may take more
  // Of too_large and unfit, those whose bound is below the best time: what memory may cost.
  size_t faster_with_memory = 0;
};

struct PlanProgress {
  size_t points = 0;
  size_t decided = 0;
  size_t evaluated = 0;
  std::optional<Seconds> best = {};
};

struct PlanOptions {
  int best = 10;
  // Names the layouts that stand for an idea among those that this framework runs, and the fastest
  // of all (shortlist.h); then `best` counts the fastest that it runs, of those that differ in
  // chunks and splits alone one.
  std::optional<Framework> ideas = {};
  bool exhaustive = false;
  int threads = 0;  // 0: as the machine has
  std::function<void(const PlanProgress&)> progress = {};
  // Asked now and then, from any thread; true ends the search with what it has.
  std::function<bool()> stop = {};
};

struct PlanResult {
  std::vector<Planned> best;  // fastest first; those that are tight behind the others
  std::vector<Planned> ideas = {};
  PlanCounts counts;
  PlanDivisions divisions;
  // Where nothing fits: of all that memory excludes, the layout that lacks least.
  std::optional<NearMiss> nearest = {};
  bool stopped = false;
};

PlanResult plan(const PlanQuestion& question, const PlanOptions& options);

}  // namespace pipesim
