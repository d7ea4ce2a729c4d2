// Seq1F1B (Sun et al. 2024, arXiv 2406.03488): 1F1B over sequence splits. The forwards
// of a microbatch run split by split from its first tokens on, its backwards the other way round,
// since the last tokens attend to all of them; splits - 1 more warm-up forwards make the last split
// of the first microbatch arrive in time.
#include <algorithm>

#include "sim/planning/schedule.h"

namespace pipesim::seq_1f1b {
namespace {

Program plan(const Problem& problem) {
  const Shape& shape = problem.shape;
  const int units = shape.units();
  PassLists lists(shape.devices);
  for (int device = 0; device < shape.devices; ++device) {
    auto& list = lists[device];
    list.reserve(2 * units);
    const int warm_up = std::min(shape.devices - 2 - device + shape.splits, units);
    int forward = 0;
    while (forward < warm_up) list.push_back(make_pass(PassKind::kF, forward++));
    for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
      for (int split = shape.splits - 1; split >= 0; --split) {
        if (forward < units) list.push_back(make_pass(PassKind::kF, forward++));
        list.push_back(make_pass(PassKind::kBW, microbatch * shape.splits + split));
      }
    }
  }
  return {shape, problem.placement, std::move(lists)};
}

const RegisteredSchedule kSeq1F1B{{
    .name = "seq-1f1b",
    .summary = "1F1B over sequence splits: bubble and memory of a split, not of a microbatch",
    .source = "Seq1F1B, arXiv 2406.03488",
    .order =
        "1F1B over n sequence splits: p-2-d+n F, backwards of a microbatch from its last split",
    .default_splits = 4,
    .options = {splits_option()},
    .plan = plan,
    .fixed_order = everywhere,
    .whole_backward = true,
    .claims = {.bubble = {.formula = "(p-1) (F+B+W), F, B, W of a split",
                          .domain = "every m and number of splits; equal stages, free transfers",
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
               .peak = {.formula = "min(p-d + splits-1, m splits) splits",
                        .domain = "everywhere",
                        .holds = [](const Problem&) { return true; },
                        .in_flight =
                            [](const Problem& problem, int device) {
                              const Shape& shape = problem.shape;
                              return std::min(shape.devices - device + shape.splits - 1,
                                              shape.units());
                            }}},
    .runs_on = Runtime::kZeroBubbleFork,
    .left_out_of_plan = "its sequence splits are an option, and plans vary no options",
}};

}  // namespace
}  // namespace pipesim::seq_1f1b
