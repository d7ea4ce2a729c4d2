#include "schedules/order_within.h"

#include <algorithm>
#include <utility>

#include "sim/execution/evaluate.h"
#include "sim/planning/justify.h"

namespace pipesim {
namespace {

bool has_whole_backwards(const Program& program) {
  for (int d = 0; d < program.shape().devices; ++d) {
    const auto passes = program.passes(d);
    if (std::ranges::find(passes, PassKind::kBW, &Pass::kind) != passes.end()) return true;
  }
  return false;
}

PassLists in_parts(const Program& whole) {
  PassLists lists;
  for (int d = 0; d < whole.shape().devices; ++d) {
    auto& list = lists.emplace_back();
    list.reserve(2 * whole.passes(d).size());
    for (const Pass& pass : whole.passes(d)) {
      const bool both = pass.kind == PassKind::kBW;
      const auto microbatch = static_cast<int>(pass.microbatch);
      const auto chunk = static_cast<int>(pass.chunk);
      list.push_back(make_pass(both ? PassKind::kB : pass.kind, microbatch, chunk));
      if (both) list.push_back(make_pass(PassKind::kW, microbatch, chunk));
    }
  }
  return lists;
}

}  // namespace

bool is_small(const Problem& problem) {
  constexpr int kSmall = 300;  // passes of a kind
  return problem.shape.devices * problem.shape.microbatches <= kSmall;
}

OrderWithin justified(OrderWithin order, const Problem& problem, Bytes limit) {
  Justifier justify(problem);
  justify.set_limit(limit);
  const Seconds cost(1e-12 * justify.run(order.lists));
  if (cost >= order.cost) return order;
  justify.save(order.lists);
  order.cost = cost;
  return order;
}

OtherOrder::OtherOrder(const Program& whole, const Problem& problem) : order_{in_parts(whole), {}} {
  const Evaluation result =
      has_whole_backwards(whole)
          ? evaluate({problem.shape, problem.placement, order_.lists}, problem)
          : evaluate(whole, problem);
  order_.cost = result.cost;
  peak_ = result.peak_activation();
}

std::optional<OrderWithin> OtherOrder::within(Bytes limit) const {
  constexpr double kRounding = 1 + 1e-12;
  if (peak_ > kRounding * limit) return std::nullopt;
  return order_;
}

const OtherOrder& OtherOrders::of(std::string_view schedule) {
  const auto known = orders_.find(schedule);
  if (known != orders_.end()) return known->second;
  OtherOrder order(*plan_with(*find_schedule(schedule), problem_, source_), problem_);
  return orders_.emplace(schedule, std::move(order)).first->second;
}

}  // namespace pipesim
