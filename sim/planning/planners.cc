#include "sim/planning/planners.h"

#include <algorithm>

#include "sim/execution/evaluate.h"

namespace pipesim {
namespace {

int peak_in_flight(const Evaluation& result) {
  return std::ranges::max(result.devices, {}, &DeviceEvaluation::peak_in_flight).peak_in_flight;
}

}  // namespace

std::vector<Program> orders_of(const Schedule& schedule, const Problem& problem) {
  std::vector<Program> orders;
  if (schedule.fixed_order(problem)) {
    orders.push_back(schedule.plan(problem));
  } else if (schedule.orders != nullptr) {
    orders = schedule.orders(problem);
  }
  return orders;
}

const Program& better_order(const std::vector<Program>& orders, const Problem& problem,
                            OrderSource* source) {
  if (orders.size() == 1) return orders.front();
  if (source != nullptr) {
    const auto of_first = source->time(orders.front(), problem);
    const auto of_second = source->time(orders.back(), problem);
    if (of_first && of_second && *of_second >= *of_first) return orders.front();
  }
  const Evaluation first = evaluate(orders.front(), problem);
  const PlanTime least = plan_time(first, problem.objective);
  const auto second = evaluate_below(orders.back(), problem, seconds_above(least));
  const bool better = second && plan_time(*second, problem.objective) < least &&
                      peak_in_flight(*second) <= peak_in_flight(first);
  return better ? orders.back() : orders.front();
}

std::shared_ptr<const Program> plan_with(const Schedule& schedule, const Problem& problem,
                                         OrderSource* source) {
  if (source != nullptr && (schedule.fixed_order(problem) || schedule.orders != nullptr)) {
    const auto orders = source->orders(schedule, problem);
    if (!orders->empty()) return {orders, &better_order(*orders, problem, source)};
  }
  if (source != nullptr && schedule.planner != nullptr) {
    const Bytes usual = problem.shape.devices * problem.device_activation();
    return Planners(problem, source).plan(schedule, problem.activation_limit.value_or(usual));
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
  if (!planner) planner = schedule.planner(problem_, *this);
  known = std::make_shared<const Program>(planner->plan(limit));
  return known;
}

}  // namespace pipesim
