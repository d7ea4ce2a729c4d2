// Plans of one problem within one limit on activation memory after the other, for those who ask for
// many: what they have in common is made once.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/schedule.h"

namespace pipesim {

// Of one schedule and problem. For one thread.
class LimitPlanner {
 public:
  virtual ~LimitPlanner() = default;
  // What the schedule plans for the problem with this limit, whatever was planned before.
  virtual Program plan(Bytes limit) = 0;
};

// Of all schedules that have one, for one problem; they plan with each other's. For one thread.
class Planners {
 public:
  // As `for_planning` returns it; its limit is left out.
  explicit Planners(Problem problem);

  // What the schedule plans for the problem with this limit, which it must accept. Made once.
  std::shared_ptr<const Program> plan(const Schedule& schedule, Bytes limit);

 private:
  Problem problem_;
  std::map<const Schedule*, std::unique_ptr<LimitPlanner>> planners_;
  std::map<std::pair<const Schedule*, Bytes>, std::shared_ptr<const Program>> plans_;
};

}  // namespace pipesim
