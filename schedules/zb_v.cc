// ZB-V (Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, section 6): two chunks per
// device in V-shape and an automatic order within any limit on activation memory. Without a limit
// it is 1F1B's memory, what p microbatches keep on a device.
//
// The best of several plans. `RoundsPlanner` is the paper's heuristic, made for that memory and a
// little more: below it, its warm-up hardly comes about. `GreedyPlanner` plays the pipeline in
// time and is better wherever memory is plenty or very short. Both plan for the limit and for every
// rung below it (sim/planning/memory_ladder.h), and the hand-made ZB-V, V-Half, V-Min and 1F1B-V
// count as they are where they fit, unless the plan is within 2% of what none can be below.
// O(passes) per plan; both headers say why any limit that one microbatch keeps is kept and can be
// executed.
#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/order_within.h"
#include "schedules/zb_v_rounds.h"
#include "sim/planning/device_bound.h"
#include "sim/planning/greedy.h"
#include "sim/planning/memory_ladder.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// What p microbatches keep fits into a limit of p times that, however the sum is rounded.
constexpr double kRounding = 1 + 1e-12;

Bytes limit_of(const Problem& problem) {
  return problem.activation_limit.value_or(problem.shape.devices * problem.device_activation());
}

// The best plan so far, in picoseconds.
struct Best {
  double cost = kNever;
  PassLists lists;

  void keep(double other, PassLists& others) {
    if (other >= cost) return;
    cost = other;
    std::swap(lists, others);
  }
};

// All plans within one limit.
class Search {
 public:
  Search(const Problem& problem, Bytes limit, Best& best)
      : rounds_(problem, limit), greedy_(problem, limit), best_(best) {}

  // The paper's choices, and repetition with what the best of them idled.
  void try_published() {
    for (const size_t choices : std::array<size_t, 4>{0, 2, 3, 4}) {
      best_.keep(try_rounds(choices), rounds_.lists());
    }
    repeat_rounds(true);
  }

  // In `little` memory, less than 1F1B's, the rounds' warm-up hardly comes about: one will do.
  void try_all(bool little) {
    best_.keep(try_rounds(0), rounds_.lists());
    try_greedy({.patience = kPatience});
    try_greedy({.b1_before_f1 = true, .patience = kPatience});
    if (little) return;
    try_greedy({.patience = 0});
    for (size_t i = 1; i < kChoices.size(); ++i) best_.keep(try_rounds(i), rounds_.lists());
    repeat_rounds(false);
  }

 private:
  // The paper's four choices, and one that lets a W fill a gap that is a little too short for it,
  // found by experiment.
  static constexpr std::array<RoundsChoices, 5> kChoices{
      {{true, false, 1}, {true, false, 0.7}, {true, true, 1}, {false, false, 1}, {false, true, 1}}};
  // Found by experiment; less makes more F0 wait in memory, more makes devices idle.
  static constexpr double kPatience = 0.3;
  // Rounds that idle this much longer than the best plan so far may still improve when repeated.
  static constexpr double kHope = 1.25;

  // With what the best run idled known, all may idle as much where it helps. Unless `whatever` it
  // gains, what has gained more than a run that was given up could have does not count: what counts
  // does not depend on what was tried before.
  void repeat_rounds(bool whatever) {
    const double first = least_of_rounds_;
    for (double before = kNever; least_of_rounds_ < before;) {
      if (!whatever && first >= hoped(best_.cost)) return;
      before = least_of_rounds_;
      rounds_.allow(slack_);
      const double cost = try_rounds(best_choices_);
      if (whatever || first < hoped(cost)) best_.keep(cost, rounds_.lists());
    }
  }

  double try_rounds(size_t choices) {
    const double cost = rounds_.run(kChoices[choices], hoped(best_.cost));
    if (cost < least_of_rounds_) {
      least_of_rounds_ = cost;
      best_choices_ = choices;
      slack_ = rounds_.slack();
    }
    return cost;
  }
  void try_greedy(const GreedyRules& rules) {
    best_.keep(greedy_.run(rules, best_.cost), greedy_.lists());
  }
  [[nodiscard]] double hoped(double cost) const {
    return rounds_.most_work() + kHope * (cost - rounds_.most_work());
  }

  RoundsPlanner rounds_;
  GreedyPlanner greedy_;
  Best& best_;
  double least_of_rounds_ = kNever;
  size_t best_choices_ = 0;
  std::vector<double> slack_;
};

Program plan(const Problem& problem) {
  const Bytes limit = limit_of(problem);
  Best best;
  best.lists.resize(problem.shape.devices);
  const auto is_best = [&](Bytes within) {
    return best.cost <= kNearEnough * 1e12 * bound_of_devices(problem, within).value();
  };
  if (problem.option<bool>("published_rules").value_or(false)) {
    Search(problem, limit, best).try_published();
    return {problem.shape, problem.placement, std::move(best.lists)};
  }
  // What is tried within a limit follows from that limit alone, or the ladder would not hold.
  const Bytes of_1f1b = problem.shape.devices * problem.device_activation();
  const auto try_within = [&](Bytes within) {
    Search(problem, within, best).try_all(kRounding * within < of_1f1b);
  };
  try_within(limit);
  // The others take long to plan, and where stages are equal and memory is not short, longer
  // iterations were not seen to gain by them unless transfers are longer than passes.
  const bool plain = uniform(problem) && problem.shape.microbatches > problem.shape.devices &&
                     kRounding * limit >= of_1f1b;
  for (const char* made : {"zb-v-handmade", "v-half", "v-min", "1f1b-v"}) {
    if (is_best(limit) || (plain && made != std::string_view("zb-v-handmade"))) break;
    auto order = order_within(made, problem, limit);
    if (order) best.keep(order->cost.value() * 1e12, order->lists);
  }
  for (const Bytes rung : rungs_below(problem, limit)) {
    if (is_best(rung)) break;
    try_within(rung);
  }
  return {problem.shape, problem.placement, std::move(best.lists)};
}

bool in_1f1b_memory(const Problem& problem) {
  return uniform(problem) && free_transfers(problem) && b_frees_nothing(problem) &&
         limit_of(problem) == problem.shape.devices * problem.device_activation();
}

const RegisteredSchedule kZbV{{
    .name = "zb-v",
    .summary = "ZB-V's automatic schedule within memory_limit; without one, within 1F1B's memory",
    .source = "Zero Bubble, arXiv 2401.10241, section 6",
    .order = "V-shape, two chunks; the paper's rounds of one B and one F, and a greedy plan in "
             "time, best kept; within memory_limit, else p microbatches' memory",
    .default_chunks = 2,
    .min_chunks = 2,
    .max_chunks = 2,
    .place = [](int devices, int) { return Placement::vee(devices); },
    .options = {{.name = "published_rules",
                 .type = OptionSpec::Type::kFlag,
                 .help = "only the paper's rounds and its four choices, to compare with",
                 .default_text = "false"}},
    .memory_limit = true,
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
               .peak = {
                   .formula = "min(2p, 2m) chunks",
                   .domain = "F <= B, the default limit; equal stages, free transfers, B frees "
                             "nothing",
                   .holds =
                       [](const Problem& problem) {
                         return in_1f1b_memory(problem) &&
                                problem.stage(0).forward <= problem.stage(0).backward_input;
                       },
                   .in_flight =
                       [](const Problem& problem, int) {
                         return 2 * std::min(problem.shape.devices, problem.shape.microbatches);
                       }}},
    .runs_on = Runtime::kZeroBubbleFork,
}};

}  // namespace
}  // namespace pipesim
