// 1F1B (PipeDream-Flush, Narayanan et al. 2021, arXiv 2104.04473, section 2.2.1): after a warm-up
// of one forward less per device, each device alternates one forward and one backward.
#include <algorithm>

#include "schedules/vocabulary.h"
#include "sim/planning/schedule.h"

namespace pipesim::plain_1f1b {
namespace {

Program plan(const Problem& problem) {
  if (is_sharded(problem.vocabulary)) return vocabulary_1f1b(problem);
  const Shape& shape = problem.shape;
  PassLists lists(shape.devices);
  for (int device = 0; device < shape.devices; ++device) {
    auto& list = lists[device];
    const int warm_up = std::min(shape.devices - 1 - device, shape.microbatches);
    int forward = 0;
    while (forward < warm_up) list.push_back(make_pass(PassKind::kF, forward++));
    for (int backward = 0; backward < shape.microbatches; ++backward) {
      if (forward < shape.microbatches) list.push_back(make_pass(PassKind::kF, forward++));
      list.push_back(make_pass(PassKind::kBW, backward));
    }
  }
  return {shape, problem.placement, std::move(lists)};
}

const RegisteredSchedule k1F1B{{
    .name = "1f1b",
    .summary = "one forward, one backward; p-d microbatches in flight on device d",
    .source = "Narayanan et al. 2021, arXiv 2104.04473, section 2.2.1",
    .order = "p-1-d F, then F and BW in turn, then BW",
    .plan = plan,
    .fixed_order = vocabulary_not_sharded,
    .whole_backward = true,
    .claims = {.bubble = {.formula = "(p-1) (F+B+W)",
                          .domain =
                              "every m; equal stages, free transfers (else each round trip exposes "
                              "latency: evaluate)",
                          .holds =
                              [](const Problem& problem) {
                                return uniform(problem) && free_transfers(problem);
                              },
                          .bubble =
                              [](const Problem& problem) {
                                const StageCost& cost = problem.stage(0);
                                return (problem.shape.devices - 1) *
                                       (cost.forward + cost.backward_input + cost.backward_weight);
                              }},
               .peak = {.formula = "min(p-d, m)",
                        .domain = "everywhere",
                        .holds = [](const Problem&) { return true; },
                        .in_flight =
                            [](const Problem& problem, int device) {
                              return std::min(problem.shape.devices - device,
                                              problem.shape.microbatches);
                            }}},
    .vocabulary = vocabulary_1f1b_claims(),
    .calls = CallGroups::kMegatron,
    .runs_on = Runtime::kMegatron,
}};

}  // namespace
}  // namespace pipesim::plain_1f1b
