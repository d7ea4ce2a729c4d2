// ZB-H2, made by hand (Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, section 2.2):
// twice the warm-up of ZB-H1 fills the warm-up bubble as well, for twice the activations.
#include <algorithm>

#include "sim/planning/schedule.h"

namespace pipesim::zb_h2 {
namespace {

Program plan(const Problem& problem) {
  const Shape& shape = problem.shape;
  PassLists lists(shape.devices);
  for (int device = 0; device < shape.devices; ++device) {
    auto& list = lists[device];
    int f = 0;
    int w = 0;
    while (f < std::min(2 * (shape.devices - 1 - device), shape.microbatches)) {
      list.push_back(make_pass(PassKind::kF, f++));
    }
    for (int b = 0; b < shape.microbatches; ++b) {
      if (f < shape.microbatches) list.push_back(make_pass(PassKind::kF, f++));
      list.push_back(make_pass(PassKind::kB, b));
      if (b - w >= 2 * device) list.push_back(make_pass(PassKind::kW, w++));
    }
    while (w < shape.microbatches) list.push_back(make_pass(PassKind::kW, w++));
  }
  return {shape, problem.placement, std::move(lists)};
}

bool long_enough(const Problem& problem) {
  return problem.shape.microbatches >= 2 * problem.shape.devices - 1;
}

const RegisteredSchedule kZbH2{{
    .name = "zb-h2",
    .summary = "twice 1F1B's memory for no bubble where F = B = W",
    .source = "Zero Bubble, arXiv 2401.10241, section 2.2 and Table 5",
    .order = "warm-up 2(p-1-d); W once a device owes 2d",
    .plan = plan,
    .fixed_order = everywhere,
    .claims = {.bubble = {
                   .formula = "(p-1) max(0, F+B-2W)",
                   .domain = "m >= 2p-1, W <= F; equal stages, free transfers",
                   .gap = "with m = p there are not the 2p-1 forwards that its warm-up consists of",
                   .holds =
                       [](const Problem& problem) {
                         const StageCost& cost = problem.stage(0);
                         return uniform(problem) && free_transfers(problem) &&
                                long_enough(problem) && cost.backward_weight <= cost.forward;
                       },
                   .bubble =
                       [](const Problem& problem) {
                         const StageCost& cost = problem.stage(0);
                         return (problem.shape.devices - 1) *
                                std::max(Seconds(0), cost.forward + cost.backward_input -
                                                         2 * cost.backward_weight);
                       }},
               .peak = {.formula = "min(2p-1, m)",
                        .domain = "everywhere",
                        .holds = [](const Problem&) { return true; },
                        .in_flight =
                            [](const Problem& problem, int) {
                              return std::min(2 * problem.shape.devices - 1,
                                              problem.shape.microbatches);
                            }}},
    .no_flags = "its authors' runtime has no flag for the hand-made order",
    .nearest_with_flags = "zb-2p",
    .left_out_of_plan = "best plans for the memory that there is, and counts this order",
}};

}  // namespace
}  // namespace pipesim::zb_h2
