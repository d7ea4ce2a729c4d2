// The search of a plan's layouts, for commands that show what it finds.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

#include "app/plan_options.h"
#include "sim/core/stop.h"

namespace pipesim {

struct PlanWatch {
  std::function<bool()> stop;  // asked now and then, by any thread; true ends the search
  std::function<void(const PlanProgress&)> progress;
  std::function<void(std::size_t rows)> again;        // before so many rows are run with contention
  const std::atomic<bool>& unwanted = kNeverStopped;  // true: runs end with Stopped
};

// Searches a plan that `asked` holds: names its rows, runs the first with contention, orders them
// and adds what the command compares them with. A search that is stopped leaves what it has; one
// that is unwanted throws Stopped.
void search_plan(const PlanCommand& command, const PlanAsked& asked, const PlanWatch& watch,
                 ClusterPlan& plan);

// InfeasibleError: what is nearest to fit in each plan. Requires that none has a layout. Clusters
// that have the memory are those of the catalogue, which is asked for at `asked`.
[[noreturn]] void nothing_fits(const std::vector<ClusterPlan>& plans, const Location& asked);

}  // namespace pipesim
