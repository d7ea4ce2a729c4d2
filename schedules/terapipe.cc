// TeraPipe (Li et al. 2021, arXiv 2102.07988): all forwards, slice by slice from the first tokens
// of the first microbatch on, then all backwards in exactly the opposite order. The order of the
// backwards is that of the authors' code (github.com/zhuohan123/terapipe, terapipe.py).
#include <algorithm>

#include "sim/planning/schedule.h"

namespace pipesim::terapipe {
namespace {

Program plan(const Problem& problem) {
  const Shape& shape = problem.shape;
  PassLists lists(shape.devices);
  for (auto& list : lists) {
    list.reserve(2 * shape.units());
    for (int i = 0; i < shape.units(); ++i) list.push_back(make_pass(PassKind::kF, i));
    for (int i = shape.units() - 1; i >= 0; --i) list.push_back(make_pass(PassKind::kBW, i));
  }
  return {shape, problem.placement, std::move(lists)};
}

Seconds backward(const StageCost& cost) { return cost.backward_input + cost.backward_weight; }

// True if every slice takes as long on all stages, and its messages as long as another's.
bool holds(const Problem& problem) {
  return uniform(problem) && std::ranges::all_of(problem.kinds, [&](const UnitKind& kind) {
           for (size_t vs = 0; vs < kind.stages.size(); ++vs) {
             const StageCost& cost = kind.stages[vs];
             if (cost.forward != kind.stages[0].forward ||
                 backward(cost) != backward(kind.stages[0]) ||
                 cost.transfer != problem.kinds[0].stages[vs].transfer) {
               return false;
             }
           }
           return true;
         });
}

// Each way is a flow shop whose machines are alike: the last slice has left the last of them after
// the sum of all slices and p-1 times the longest, and backwards begin there at once.
Seconds bubble(const Problem& problem) {
  const Shape& shape = problem.shape;
  Seconds longest_forward;
  Seconds longest_backward;
  for (int unit = 0; unit < shape.units(); ++unit) {
    const StageCost& cost = problem.stage(0, unit);
    longest_forward = std::max(longest_forward, cost.forward);
    longest_backward = std::max(longest_backward, backward(cost));
  }
  Seconds transfers;
  for (int vs = 0; vs + 1 < shape.devices; ++vs) transfers += problem.stage(vs, 0).transfer;
  return (shape.devices - 1) * (longest_forward + longest_backward) + 2 * transfers;
}

const RegisteredSchedule kTeraPipe{{
    .name = "terapipe",
    .summary = "GPipe over token slices: bubble of the longest slice, memory of every microbatch",
    .source = "TeraPipe, arXiv 2102.07988; backward order: the authors' code",
    .order = "all F by microbatch and slice, then all BW, the last slice of the last microbatch "
             "first",
    .default_splits = 4,
    .options = {splits_option()},
    .plan = plan,
    .fixed_order = everywhere,
    .whole_backward = true,
    .claims = {.bubble = {.formula = "(p-1) (max F + max (B+W)) + 2 Tcomm of every boundary, "
                                     "longest over the slices",
                          .domain = "every m and number of splits; equal stages, slices that "
                                    "differ only in seconds of F, B, W",
                          .holds = holds,
                          .bubble = bubble},
               .peak = {.formula = "m splits splits",
                        .domain = "everywhere",
                        .holds = everywhere,
                        .in_flight = [](const Problem& problem,
                                        int) { return problem.shape.units(); }}},
    .no_flags = "the authors' code, which runs it, has flags of its own",
    .nearest_with_flags = "seq-1f1b",
    .left_out_of_plan = "it holds every microbatch; seq-1f1b has the same bubble in less memory "
                        "where slices cost alike",
}};

}  // namespace
}  // namespace pipesim::terapipe
