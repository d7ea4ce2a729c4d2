// GPipe (Huang et al. 2019, arXiv 1811.06965, section 2.3): all forwards, then all backwards.
#include "sim/planning/schedule.h"

namespace pipesim::gpipe {
namespace {

Program plan(const Problem& problem) {
  const Shape& shape = problem.shape;
  PassLists lists(shape.devices);
  for (auto& list : lists) {
    for (int i = 0; i < shape.microbatches; ++i) list.push_back(make_pass(PassKind::kF, i));
    for (int i = 0; i < shape.microbatches; ++i) list.push_back(make_pass(PassKind::kBW, i));
  }
  return {shape, problem.placement, std::move(lists)};
}

Seconds bubble(const Problem& problem) {
  const StageCost& cost = problem.stage(0);
  Seconds transfers;
  for (int vs = 0; vs + 1 < problem.shape.devices; ++vs) transfers += problem.stage(vs).transfer;
  return (problem.shape.devices - 1) * (cost.forward + cost.backward_input + cost.backward_weight) +
         2 * transfers;
}

const RegisteredSchedule kGpipe{{
    .name = "gpipe",
    .summary = "all forwards, then all backwards",
    .source = "GPipe, arXiv 1811.06965, section 2.3",
    .order = "all F, then all BW, both in order of microbatches",
    .plan = plan,
    .fixed_order = everywhere,
    .whole_backward = true,
    .claims = {.bubble = {.formula = "(p-1) (F+B+W) + 2 Tcomm of every boundary",
                          .domain = "every m; equal stages",
                          .holds = uniform,
                          .bubble = bubble},
               .peak = {.formula = "m",
                        .domain = "everywhere",
                        .holds = [](const Problem&) { return true; },
                        .in_flight = [](const Problem& problem,
                                        int) { return problem.shape.microbatches; }}},
    .calls = CallGroups::kMegatron,
    .nearest_with_flags = "1f1b",
    .left_out_of_plan = "it holds every microbatch; 1f1b has the same bubble in less memory",
}};

}  // namespace
}  // namespace pipesim::gpipe
