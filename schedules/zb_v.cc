// ZB-V (Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, section 6), as the authors'
// public code makes it: two chunks per device in V-shape, and the paper's rounds
// (schedules/zb_v_rounds.h) within a limit on activation memory, 1F1B's where none is given. Stages
// that differ are planned with what each of them takes and keeps. O(passes).
//
// The rounds warm up only within what p microbatches keep, or a chunk less with fewer microbatches
// than devices: the public code stops at an assertion below, and here the limit is refused.
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "schedules/zb_v_rounds.h"
#include "sim/planning/memory_ladder.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"

namespace pipesim::zb_v {
namespace {

// In microbatches of two chunks.
double least_limit(const Shape& shape) {
  if (shape.microbatches == 1) return 1;
  return shape.microbatches < shape.devices ? shape.devices - 0.5 : shape.devices;
}

std::optional<Refusal> refuse(const Problem& problem) {
  if (!problem.activation_limit) return std::nullopt;
  const double least = least_limit(problem.shape);
  const double asked = *problem.activation_limit / problem.device_activation();
  if (kRounding * asked >= least) return std::nullopt;
  return Refusal{
      fmt::format("zb-v needs a memory_limit of at least {:.4g} times what p microbatches "
                  "keep, not {:.4g}: the paper's rounds do not warm up within less; "
                  "{{name: best, placement: vee}} plans within any limit",
                  least / problem.shape.devices, asked / problem.shape.devices),
      problem.shape};
}

Program plan(const Problem& problem) {
  Problem by_span = problem;
  by_span.objective = Objective::kCost;
  OrderWithin best = PublishedRounds(by_span).plan(limit_or_1f1b(problem));
  return {problem.shape, problem.placement, std::move(best.lists)};
}

bool in_1f1b_memory(const Problem& problem) {
  return uniform(problem) && free_transfers(problem) && b_frees_nothing(problem) &&
         limit_or_1f1b(problem) == memory_of_1f1b(problem);
}

const RegisteredSchedule kZbV{{
    .name = "zb-v",
    .summary = "ZB-V's automatic schedule within memory_limit; without one, within 1F1B's memory",
    .source = "Zero Bubble, arXiv 2401.10241, section 6",
    .order = "V-shape, two chunks; rounds of one B and one F, the paper's four choices, the one of "
             "the shortest span; within memory_limit, else p microbatches' memory",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 2,
    .place = [](int devices, int) { return Placement::vee(devices); },
    .memory_limit = true,
    .refuse = refuse,
    .plan = plan,
    .claims = {.bubble = {.formula = "max(0, 2p-1-m) F, F of a chunk",
                          .domain = "F = B = W, m >= p, the default limit; equal stages, free "
                                    "transfers, B frees nothing",
                          .gap = "with unequal times no closed form is known for the heuristic",
                          .holds =
                              [](const Problem& problem) {
                                const StageCost& cost = problem.stage(0);
                                return in_1f1b_memory(problem) &&
                                       problem.shape.microbatches >= problem.shape.devices &&
                                       cost.forward == cost.backward_input &&
                                       cost.forward == cost.backward_weight;
                              },
                          .bubble =
                              [](const Problem& problem) {
                                const Shape& shape = problem.shape;
                                return std::max(0, 2 * shape.devices - 1 - shape.microbatches) *
                                       problem.stage(0).forward;
                              }},
               .peak = {.formula = "2p chunks",
                        .domain =
                            "F <= B, m >= p, the default limit; equal stages, free transfers, B "
                            "frees nothing",
                        .holds =
                            [](const Problem& problem) {
                              return in_1f1b_memory(problem) &&
                                     problem.shape.microbatches >= problem.shape.devices &&
                                     problem.stage(0).forward <= problem.stage(0).backward_input;
                            },
                        .in_flight = [](const Problem& problem,
                                        int) { return 2 * problem.shape.devices; }}},
    .runs_on = Runtime::kZeroBubbleFork,
    .left_out_of_plan = "best plans within the same limit",
    .left_out_of_search = "best plans within the same limit",
}};

}  // namespace
}  // namespace pipesim::zb_v
