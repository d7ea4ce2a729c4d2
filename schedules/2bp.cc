// 2BP (Rae, Lee and Richings, arXiv 2405.18047): backward split in two, the gradients of the
// weights left to the end of the step.
#include <algorithm>

#include "sim/planning/schedule.h"

namespace pipesim::two_bp {
namespace {

bool after_1f1b(const Problem& problem) {
  return problem.option<bool>("one_forward_one_backward").value_or(true);
}

Program plan(const Problem& problem) {
  const auto& [p, v, m, splits] = problem.shape;
  PassLists lists(p);
  for (int d = 0; d < p; ++d) {
    auto& list = lists[d];
    const int warm_up = after_1f1b(problem) ? std::min(p - 1 - d, m) : m;
    for (int i = 0; i < warm_up; ++i) list.push_back(make_pass(PassKind::kF, i));
    for (int i = 0; i < m; ++i) {
      if (warm_up + i < m) list.push_back(make_pass(PassKind::kF, warm_up + i));
      list.push_back(make_pass(PassKind::kB, i));
    }
    for (int i = 0; i < m; ++i) list.push_back(make_pass(PassKind::kW, i));
  }
  return {problem.shape, problem.placement, std::move(lists)};
}

const RegisteredSchedule k2bp{{
    .name = "2bp",
    .summary = "1F1B or GPipe with every W at the end of the step: (p-1) W less bubble, all "
               "microbatches held",
    .source = "2BP, arXiv 2405.18047",
    .order = "as 1F1B or GPipe with B for BW; then every W",
    .options = {{.name = "one_forward_one_backward",
                 .type = OptionSpec::Type::kFlag,
                 .help = "F and B as 1F1B has them; false: as GPipe",
                 .default_text = "true"}},
    .plan = plan,
    .fixed_order = everywhere,
    .claims = {.bubble = {.formula = "(p-1) (F+B)",
                          .domain = "every m; equal stages, free transfers",
                          .holds =
                              [](const Problem& problem) {
                                return uniform(problem) && free_transfers(problem);
                              },
                          .bubble =
                              [](const Problem& problem) {
                                const StageCost& cost = problem.stage(0);
                                return (problem.shape.devices - 1) *
                                       (cost.forward + cost.backward_input);
                              }},
               .peak = {.formula = "m",
                        .domain = "everywhere",
                        .holds = [](const Problem&) { return true; },
                        .in_flight = [](const Problem& problem,
                                        int) { return problem.shape.microbatches; }}},
    .no_flags =
        "no public runtime has it; Megatron-LM delays W only beside expert-parallel overlap",
    .nearest_with_flags = "1f1b",
    .left_out_of_plan = "it holds every microbatch; zb-h1 has less bubble in 1F1B's memory",
}};

}  // namespace
}  // namespace pipesim::two_bp
