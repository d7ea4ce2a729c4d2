#include "sim/planning/planners.h"

namespace pipesim {

Planners::Planners(Problem problem) : problem_(std::move(problem)) {
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
  if (!planner) planner = schedule.planner(problem_, *this);
  known = std::make_shared<const Program>(planner->plan(limit));
  return known;
}

}  // namespace pipesim
