// ZB-H1 as the Zero Bubble repository's light patch of Megatron-LM runs it: 1F1B's loop, the newest
// owed W first, and a W that follows its own B fused with it while forwards are left.
#include <algorithm>
#include <vector>

#include "sim/planning/schedule.h"

namespace pipesim::zb_h1_light {
namespace {

Program plan(const Problem& problem) {
  const Shape& shape = problem.shape;
  PassLists lists(shape.devices);
  for (int device = 0; device < shape.devices; ++device) {
    auto& list = lists[device];
    std::vector<int> owed;  // microbatches whose W is still to run, newest last
    int f = 0;
    while (f < std::min(shape.devices - 1 - device, shape.microbatches)) {
      list.push_back(make_pass(PassKind::kF, f++));
    }
    for (int b = 0; b < shape.microbatches; ++b) {
      if (f < shape.microbatches) list.push_back(make_pass(PassKind::kF, f++));
      const bool split = b < device || f == shape.microbatches;
      if (device == 0 || !split) {
        list.push_back(make_pass(PassKind::kBW, b));
        continue;
      }
      list.push_back(make_pass(PassKind::kB, b));
      if (b >= device) {
        list.push_back(make_pass(PassKind::kW, b));
      } else {
        owed.push_back(b);
      }
    }
    for (; !owed.empty(); owed.pop_back()) list.push_back(make_pass(PassKind::kW, owed.back()));
  }
  return {shape, problem.placement, std::move(lists)};
}

const RegisteredSchedule kZbH1Light{{
    .name = "zb-h1-light",
    .summary = "ZB-H1 as a small patch of 1F1B: the same bubble and memory, fewer split backwards",
    .source = "sail-sg/zero-bubble-pipeline-parallelism, zbpp_light",
    .order =
        "ZB-H1 inside 1F1B's loop, newest owed W first, W fused with its own B while F are left",
    .plan = plan,
    .fixed_order = everywhere,
    .claims = {.bubble = {.formula = "(p-1) (B + max(0, F-W))",
                          .domain = "m >= p; equal stages, free transfers",
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
    .left_out_of_plan = "zb-h1 has the same bubble and memory",
}};

}  // namespace
}  // namespace pipesim::zb_h1_light
