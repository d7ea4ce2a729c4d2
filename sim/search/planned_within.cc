#include "sim/search/planned_within.h"

#include <optional>
#include <utility>

#include "sim/core/error.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"
#include "sim/search/bound.h"

namespace pipesim {
namespace {

bool plans_for(const Schedule& schedule, const Problem& problem, Included which) {
  const Shape& shape = problem.shape;
  const bool sought = which == Included::kAll || schedule.left_out_of_search.empty();
  return schedule.memory_limit && sought && !schedule.offloads() &&
         shape.chunks >= schedule.min_chunks && shape.chunks <= schedule.max_chunks &&
         schedule.place(shape.devices, shape.chunks) == problem.placement;
}

std::optional<Program> plan_of(const Schedule& schedule, const Problem& problem, Bytes limit,
                               Included which) {
  Problem planning = for_planning(problem, schedule);
  planning.activation_limit = limit;
  if (schedule.refusal(planning)) return std::nullopt;
  try {
    Program planned = schedule.plan(planning);
    const bool fits = is_within(evaluate(planned, problem).peak_activation(), limit);
    const bool known = which == Included::kAll ? !overtakes_unequally(planned, problem)
                                               : !planned.units_overtake();
    if (!fits || !planned.pairs().empty() || !known) return std::nullopt;
    return planned;
  } catch (const InfeasibleError&) {
    return std::nullopt;  // not within this limit
  }
}

}  // namespace

std::vector<Program> planned_within(const Problem& problem, Bytes limit, Included which) {
  std::vector<Program> programs;
  for (const Schedule* schedule : schedules()) {
    if (!plans_for(*schedule, problem, which)) continue;
    if (auto planned = plan_of(*schedule, problem, limit, which))
      programs.push_back(*std::move(planned));
  }
  return programs;
}

}  // namespace pipesim
