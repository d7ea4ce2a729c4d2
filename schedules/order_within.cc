#include "schedules/order_within.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "sim/execution/with_backwards_apart.h"
#include "sim/planning/justify.h"
#include "sim/planning/room.h"

namespace pipesim {
namespace {

bool has_whole_backwards(const Program& program) {
  for (int d = 0; d < program.shape().devices; ++d) {
    const auto passes = program.passes(d);
    if (std::ranges::find(passes, PassKind::kBW, &Pass::kind) != passes.end()) return true;
  }
  return false;
}

}  // namespace

ProblemSize size_of(const Problem& problem) {
  const int passes = problem.shape.devices * problem.shape.microbatches;
  if (passes <= 300) return ProblemSize::kSmall;
  return passes <= 600 ? ProblemSize::kMiddling : ProblemSize::kLarge;
}

Bytes limit_to_plan_for(const Problem& problem, Bytes limit) {
  const StageCost& first = problem.stages.front();
  const bool alike = std::ranges::all_of(problem.stages, [&first](const StageCost& cost) {
    return cost.activation == first.activation && cost.weight_stash == first.weight_stash;
  });
  if (alike) return limit;
  const Bytes step = 1.0 / 32 * problem.device_activation();
  return std::floor(kRounding * (limit / step)) * step;
}

Problem with_messages_in_steps(Problem problem, int least) {
  constexpr int kSteps = 16;
  Seconds forward;
  for (const StageCost& cost : problem.stages) forward += cost.forward;
  const Seconds step = forward / (kSteps * problem.shape.devices);
  if (step <= Seconds(0)) return problem;
  const Placement& place = problem.placement;
  for (int vs = 0; vs + 1 < place.virtual_stages(); ++vs) {
    if (place.device(vs) == place.device(vs + 1)) continue;
    Seconds& transfer = problem.stages[vs].transfer;
    transfer = std::max(std::ceil(transfer / step / kRounding), static_cast<double>(least)) * step;
  }
  return problem;
}

int most_steps(const Problem& problem) { return size_of(problem) == ProblemSize::kSmall ? 4 : 1; }

std::vector<Problem> with_longer_messages(const Problem& problem, int most) {
  std::vector<Problem> all{with_messages_in_steps(problem)};
  for (int steps = 1; steps <= most; ++steps) {
    Problem longer = with_messages_in_steps(problem, steps);
    const auto transfer = &StageCost::transfer;
    if (std::ranges::equal(longer.stages, all.back().stages, {}, transfer, transfer)) continue;
    all.push_back(std::move(longer));
  }
  return all;
}

Problem in_ticks(Problem problem) {
  for (StageCost& stage : problem.stages) {
    for (Seconds* seconds :
         {&stage.forward, &stage.backward_input, &stage.backward_weight, &stage.transfer}) {
      *seconds = Seconds(std::round(seconds->value() * 1e12));
    }
  }
  return problem;
}

OrderWithin justified(OrderWithin order, const Problem& problem, Bytes limit) {
  Justifier justify(problem);
  justify.set_limit(limit);
  const PlanTime time = justify.run(order.lists);
  if (time >= order.time) return order;
  justify.save(order.lists);
  order.time = time;
  return order;
}

std::optional<OrderWithin> OtherOrders::within(std::string_view schedule, Bytes limit,
                                               const PlanTime& most) {
  Known& known = orders_[schedule];
  if (!known.answers(most)) attempt(schedule, known, most);
  if (known.time >= most || !is_within(known.peak, limit)) return std::nullopt;
  return OrderWithin{known.lists, known.time};
}

void OtherOrders::attempt(std::string_view schedule, Known& known, const PlanTime& most) const {
  known.given_up = most;
  if (!known.program) {
    known.program = plan_with(*find_schedule(schedule), problem_, source_);
    if (has_whole_backwards(*known.program)) {
      known.program = std::make_shared<const Program>(with_backwards_apart(*known.program));
    }
  }
  const auto time = source_ == nullptr ? std::nullopt : source_->time(*known.program, problem_);
  if (time && *time >= most) return;
  const auto result = evaluate_below(*known.program, problem_, seconds_above(most));
  if (!result) return;
  known.lists = known.program->lists();
  known.time = plan_time(*result, problem_.objective);
  known.peak = result->peak_activation();
}

}  // namespace pipesim
