// Plans of one problem within many limits on activation memory; their common parts are made once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/plan_time.h"
#include "sim/planning/schedule.h"

namespace pipesim {

// Plans one schedule for one problem within any limit. For one thread.
class LimitPlanner {
 public:
  virtual ~LimitPlanner() = default;
  // The schedule's plan within this limit, independent of earlier calls.
  virtual Program plan(Bytes limit) = 0;
};

// Orders that problems of one shape share, whatever they cost.
class OrderSource {
 public:
  virtual ~OrderSource() = default;
  // The order of a schedule whose order is fixed for the problem.
  virtual std::shared_ptr<const Program> order(const Schedule& schedule,
                                               const Problem& problem) = 0;
  // The time of such an order, where a source finds it with less work than `evaluate`.
  virtual std::optional<PlanTime> time(const Program& order, const Problem& problem) = 0;
};

// The schedule's plan for a problem that it accepts, with orders from `source` if there is one.
std::shared_ptr<const Program> plan_with(const Schedule& schedule, const Problem& problem,
                                         OrderSource* source);

// The planners of all schedules that have one, for one problem. For one thread.
class Planners {
 public:
  // Takes a problem from `for_planning` and ignores its limit. `source` must outlive this.
  explicit Planners(Problem problem, OrderSource* source = nullptr);

  // The schedule's plan within this limit, which it must accept. Each plan is made once.
  std::shared_ptr<const Program> plan(const Schedule& schedule, Bytes limit);

 private:
  Problem problem_;
  OrderSource* source_;
  std::map<const Schedule*, std::unique_ptr<LimitPlanner>> planners_;
  std::map<std::pair<const Schedule*, Bytes>, std::shared_ptr<const Program>> plans_;
};

}  // namespace pipesim
