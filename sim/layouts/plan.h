// The fastest layouts of a model on so many GPUs, of all that plan_space names and that fit.
//
// Best first: points wait in the order of their lower bound on iteration time (bound.h). The one in
// front gets a sharper bound and waits again, or is run by replay, as in `pipesim run`. A point
// that offloads also gets a run without offload, which no copy can shorten. The search ends when
// the least bound left is no better than the last of the layouts asked for. `exhaustive` runs every
// point and finds the same.
//
// Points beyond memory by their bound are not run. Tight layouts come, and wait, behind those that
// fit. Ties go to the earlier point. A layout that offloads beside its schedule is left out where
// it fits without.
//
// Results do not depend on the number of threads: each round takes a fixed number of points.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sim/layouts/near_miss.h"
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
  // Points in too_large and unfit whose bound is below the best time. It is the first bound, the
  // lowest, where an even share of the memory excludes a point.
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
  // of all (shortlist.h). `best` then counts the fastest that it runs, one for each set that
  // differs in chunks and splits alone.
  std::optional<Framework> ideas = {};
  bool exhaustive = false;
  std::function<void(const PlanProgress&)> progress = {};
  // Asked now and then, from any thread; true ends the search with its results so far.
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
