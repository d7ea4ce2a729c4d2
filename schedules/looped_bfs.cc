// Looped breadth-first (Lamy-Poirier, arXiv 2211.05953): every chunk runs all its microbatches
// before the next chunk's turn, forward and back. Where data-parallel ranks share the weights, each
// stage gathers them once per sweep, and reduces its gradients while lower chunks compute.
#include <algorithm>

#include "sim/planning/schedule.h"

namespace pipesim::looped_bfs {
namespace {

Program plan(const Problem& problem) {
  const Shape& shape = problem.shape;
  PassLists lists(shape.devices);
  for (auto& list : lists) {
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      for (int i = 0; i < shape.microbatches; ++i)
        list.push_back(make_pass(PassKind::kF, i, chunk));
    }
    std::vector<Pass> backwards(list.rbegin(), list.rend());
    for (Pass& pass : backwards) pass.kind = PassKind::kBW;
    list.insert(list.end(), backwards.begin(), backwards.end());
  }
  return {shape, problem.placement, std::move(lists)};
}

Seconds bubble(const Problem& problem) {
  const auto& [p, v, m, splits] = problem.shape;
  const StageCost& cost = problem.stage(0);
  return ((p - 1) + (v - 1) * std::max(0, p - m)) *
         (cost.forward + cost.backward_input + cost.backward_weight);
}

const RegisteredSchedule kLoopedBfs{{
    .name = "looped-bfs",
    .summary = "chunk by chunk: all microbatches forward, then all backward; weights gathered once "
               "a sweep",
    .source = "Lamy-Poirier, Breadth-First Pipeline Parallelism, arXiv 2211.05953; backward order: "
              "PyTorch",
    .order = "for every chunk F of all microbatches; then for every chunk, the last first, BW of "
             "all, the last first",
    .default_chunks = 2,
    .max_chunks = 1024,
    .plan = plan,
    .fixed_order = everywhere,
    .whole_backward = true,
    .claims = {.bubble = {.formula = "(p-1 + (v-1) max(0, p-m)) (F+B+W), F, B, W of a chunk",
                          .domain = "every m; equal stages, free transfers",
                          .holds =
                              [](const Problem& problem) {
                                return uniform(problem) && free_transfers(problem);
                              },
                          .bubble = bubble},
               .peak = {.formula = "m v chunks",
                        .domain = "everywhere",
                        .holds = [](const Problem&) { return true; },
                        .in_flight =
                            [](const Problem& problem, int) {
                              return problem.shape.microbatches * problem.shape.chunks;
                            }}},
    .no_flags = "PyTorch runs it (ScheduleLoopedBFS), which has no flags",
    .nearest_with_flags = "interleaved-1f1b",
    .left_out_of_plan =
        "it holds every microbatch; interleaved-1f1b has the same bubble in less memory",
}};

}  // namespace
}  // namespace pipesim::looped_bfs
