// Zero Bubble's automatic schedule (Qi et al., arXiv 2401.10241, section 3.1), as the authors'
// public code makes it: the first best of eight runs of a greedy heuristic within a limit on
// activation memory (schedules/zb_planner.h), by the longest span of a device.
//
// `zb-1p` and `zb-2p` allow what p and 2p microbatches keep, 1F1B's memory and twice that, and what
// one B acquires where W needs more than F left; `zb` takes the limit from the problem. Where the
// public code runs an F before its input, it stops at an assertion: here each device stays one F
// ahead of the next. O(p m).
#include <algorithm>

#include "schedules/zb_planner.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"

namespace pipesim::zb {
namespace {

Bytes limit_of_microbatches(const Problem& problem, int count) {
  Bytes most;
  for (const StageCost& cost : problem.stages) {
    const Bytes growth = std::max(Bytes(0), cost.weight_stash - cost.activation);
    most = std::max(most, count * cost.activation + growth);
  }
  return most;
}
Bytes limit_1p(const Problem& problem) {
  return limit_of_microbatches(problem, problem.shape.devices);
}
Bytes limit_2p(const Problem& problem) {
  return limit_of_microbatches(problem, 2 * problem.shape.devices);
}
Bytes limit_given(const Problem& problem) {
  return problem.activation_limit.value_or(limit_2p(problem));
}

// The three records differ in nothing but their limit, and their claims in what it lets in flight.
template <Bytes (*limit_of)(const Problem&)>
struct Within {
  static Program plan(const Problem& problem) {
    Problem by_span = problem;
    by_span.objective = Objective::kCost;
    return {problem.shape, problem.placement, ZbPlanner(by_span).published(limit_of(problem))};
  }

  static int in_flight(const Problem& problem, int /*device*/) {
    const double fit = limit_of(problem) / problem.device_activation() * kRounding;
    return static_cast<int>(std::min(fit, static_cast<double>(problem.shape.microbatches)));
  }

  // The first microbatch passes p-1 F and p-1 B elsewhere; each further one in flight covers the
  // shorter of F and W. k = p gives the paper's (p-1) (F+B-W). Found by experiment; no run went
  // below it.
  static Seconds bubble(const Problem& problem) {
    const StageCost& cost = problem.stage(0);
    const Seconds way = (problem.shape.devices - 1) * (cost.forward + cost.backward_input);
    const Seconds covered = std::min(cost.forward, cost.backward_weight);
    return std::max(Seconds(0), way - (in_flight(problem, 0) - 1) * covered);
  }

  static bool is_exact(const Problem& problem) {
    if (!uniform(problem) || !free_transfers(problem) || !b_frees_nothing(problem)) return false;
    const int p = problem.shape.devices;
    const int k = in_flight(problem, 0);
    if (k <= p) return k >= std::min(p, problem.shape.microbatches);
    const StageCost& cost = problem.stage(0);
    const bool equal = cost.forward == cost.backward_input && cost.forward == cost.backward_weight;
    return equal || (k < 2 * p && cost.forward <= cost.backward_input);
  }

  static Claims claims(std::string_view formula, std::string_view peak, std::string_view domain,
                       std::string_view gap) {
    return {.bubble = {formula, domain, gap, is_exact, bubble},
            .peak = {peak, domain, gap, is_exact, in_flight}};
  }
};

using Within1p = Within<limit_1p>;
using Within2p = Within<limit_2p>;
using WithinGiven = Within<limit_given>;

const RegisteredSchedule kZb1p{{
    .name = "zb-1p",
    .summary = "Zero Bubble's automatic schedule within 1F1B's memory",
    .source = "Zero Bubble, arXiv 2401.10241, sections 3.1 and 5",
    .order = "as zb, within p microbatches' memory",
    .plan = Within1p::plan,
    .claims = Within1p::claims("(p-1) (F+B) - (min(p, m) - 1) min(F, W)", "min(p, m)",
                               "equal stages, free transfers, B frees nothing; with m >= p and "
                               "W <= F it is ZB-H1's (p-1) (F+B-W)",
                               ""),
    .backward_acquires = true,
    .runs_on = Runtime::kZeroBubbleFork,
    .left_out_of_plan = "zb plans for the memory that there is",
}};

const RegisteredSchedule kZb2p{{
    .name = "zb-2p",
    .summary = "Zero Bubble's automatic schedule within twice 1F1B's memory: hardly any bubble",
    .source = "Zero Bubble, arXiv 2401.10241, sections 3.1 and 5",
    .order = "as zb, within 2p microbatches' memory",
    .plan = Within2p::plan,
    .claims = Within2p::claims(
        "max(0, (p-1) (F+B) - (min(2p, m) - 1) min(F, W))", "min(2p, m)",
        "equal stages, free transfers, B frees nothing; F = B = W, or m <= p, or m < 2p and F <= B",
        "from m = 2p on, with unequal times, both are bounds that the heuristic can miss: the "
        "bubble by up to two passes, the peak where memory is not what it lacks"),
    .backward_acquires = true,
    .runs_on = Runtime::kZeroBubbleFork,
    .left_out_of_plan = "zb plans for the memory that there is",
}};

const RegisteredSchedule kZb{{
    .name = "zb",
    .summary = "Zero Bubble's automatic schedule within memory_limit; without one as zb-2p",
    .source = "Zero Bubble, arXiv 2401.10241, section 3.1",
    .order = "greedy, the paper's eight hyperparameters, the one of the shortest span; within "
             "memory_limit",
    .memory_limit = true,
    .plan = WithinGiven::plan,
    .claims = WithinGiven::claims(
        "max(0, (p-1) (F+B) - (k-1) min(F, W)) with k = min(limit, m) microbatches in flight",
        "min(limit, m)",
        "equal stages, free transfers, B frees nothing, k >= min(p, m); F = B = W, or k <= p, or "
        "k < 2p and F <= B",
        "as for zb-2p: from k = 2p on, with unequal times, both are bounds"),
    .backward_acquires = true,
    .runs_on = Runtime::kZeroBubbleFork,
    .left_out_of_search = "best plans within the same limit",
}};

}  // namespace
}  // namespace pipesim::zb
