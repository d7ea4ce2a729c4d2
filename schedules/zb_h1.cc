// ZB-H1, made by hand (Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, section 2.2):
// 1F1B's warm-up and memory; weight gradients fill what 1F1B idles.
#include <algorithm>

#include "sim/planning/schedule.h"

namespace pipesim::zb_h1 {
namespace {

Program plan(const Problem& problem) {
  const Shape& shape = problem.shape;
  PassLists lists(shape.devices);
  for (int device = 0; device < shape.devices; ++device) {
    auto& list = lists[device];
    int f = 0;
    int w = 0;
    while (f < std::min(shape.devices - 1 - device, shape.microbatches)) {
      list.push_back(make_pass(PassKind::kF, f++));
    }
    for (int b = 0; b < shape.microbatches; ++b) {
      if (f < shape.microbatches) list.push_back(make_pass(PassKind::kF, f++));
      list.push_back(make_pass(PassKind::kB, b));
      if (b - w >= device) list.push_back(make_pass(PassKind::kW, w++));
    }
    while (w < shape.microbatches) list.push_back(make_pass(PassKind::kW, w++));
  }
  return {shape, problem.placement, std::move(lists)};
}

const RegisteredSchedule kZbH1{{
    .name = "zb-h1",
    .summary = "1F1B's memory, W passes delayed: about a third of 1F1B's bubble",
    .source = "Zero Bubble, arXiv 2401.10241, section 2.2 and Table 5",
    .order = "1F1B's warm-up; W runs once a device owes d of them",
    .plan = plan,
    .fixed_order = everywhere,
    .claims = {.bubble = {.formula = "(p-1) (B + max(0, F-W))",
                          .domain =
                              "m >= p; equal stages, free transfers. The paper's (p-1) (F+B-W) is "
                              "the case W <= F: a longer W no longer fits the gap left by F",
                          .holds =
                              [](const Problem& problem) {
                                return uniform(problem) && free_transfers(problem) &&
                                       problem.shape.microbatches >= problem.shape.devices;
                              },
                          .bubble =
                              [](const Problem& problem) {
                                const StageCost& cost = problem.stage(0);
                                const Seconds exposed = cost.forward - cost.backward_weight;
                                return (problem.shape.devices - 1) *
                                       (cost.backward_input + std::max(Seconds(0), exposed));
                              }},
               .peak = {.formula = "min(p, m)",
                        .domain = "everywhere",
                        .holds = [](const Problem&) { return true; },
                        .in_flight =
                            [](const Problem& problem, int) {
                              return std::min(problem.shape.devices, problem.shape.microbatches);
                            }}},
    .no_flags = "its authors give it as a patch that replaces 1F1B, not as a flag",
    .nearest_with_flags = "zb-1p",
}};

}  // namespace
}  // namespace pipesim::zb_h1
