#include "sim/planning/planners.h"

#include "sim/planning/memory_ladder.h"

namespace pipesim {

std::shared_ptr<const Program> plan_with(const Schedule& schedule, const Problem& problem,
                                         OrderSource* source) {
  if (source != nullptr && schedule.fixed_order(problem)) return source->order(schedule, problem);
  if (source != nullptr && schedule.planner != nullptr) {
    return Planners(problem, source).plan(schedule, limit_or_1f1b(problem));
  }
  return std::make_shared<const Program>(schedule.plan(problem));
}

Planners::Planners(Problem problem, OrderSource* source)
    : problem_(std::move(problem)), source_(source) {
  problem_.activation_limit = std::nullopt;
}

std::shared_ptr<const Program> Planners::plan(const Schedule& schedule, Bytes limit) {
  auto& known = plans_[{&schedule, limit}];
  if (known) return known;
  if (schedule.planner == nullptr) {
    Problem limited = problem_;
    limited.activation_limit = limit;
    known = std::make_shared<const Program>(schedule.plan(limited));
    return known;
  }
  auto& planner = planners_[&schedule];
  if (!planner) planner = schedule.planner(problem_, source_);
  known = std::make_shared<const Program>(planner->plan(limit));
  return known;
}

}  // namespace pipesim
