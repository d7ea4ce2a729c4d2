#include "schedules/order_within.h"

#include <utility>

#include "sim/execution/evaluate.h"
#include "sim/planning/schedule.h"

namespace pipesim {

std::optional<OrderWithin> order_within(std::string_view schedule, const Problem& problem,
                                        Bytes limit) {
  constexpr double kRounding = 1 + 1e-12;
  const Program whole = find_schedule(schedule)->plan(problem);
  PassLists lists;
  for (int d = 0; d < problem.shape.devices; ++d) {
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
  const Evaluation result = evaluate({problem.shape, problem.placement, lists}, problem);
  if (result.peak_activation() > kRounding * limit) return std::nullopt;
  return OrderWithin{std::move(lists), result.cost};
}

}  // namespace pipesim
