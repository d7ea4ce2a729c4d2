// ZB-V (Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, section 6): two chunks per
// device in V-shape and an automatic order within any limit on activation memory. Without a limit
// it is 1F1B's memory, what p microbatches keep on a device.
//
// The best of several plans. `RoundsPlanner` is the paper's heuristic, made for that memory and a
// little more: below it, its warm-up hardly comes about. `GreedyPlanner` plays the pipeline in
// time and is better wherever memory is plenty or very short. O(passes) per plan; both headers say
// why any limit that one microbatch keeps is kept and can be executed.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "schedules/zb_v_rounds.h"
#include "sim/pipeline/greedy.h"
#include "sim/pipeline/schedule.h"

namespace pipesim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// What p microbatches keep fits into a limit of p times that, however the sum is rounded.
constexpr double kRounding = 1 + 1e-12;

Bytes limit_of(const Problem& problem) {
  return problem.activation_limit.value_or(problem.shape.devices * problem.device_activation());
}

class Search {
 public:
  Search(const Problem& problem, Bytes limit)
      : rounds_(problem, limit),
        greedy_(problem, limit),
        best_(static_cast<size_t>(problem.shape.devices)) {}

  // The paper's choices, and repetition with what the best of them idled.
  PassLists best_published() && {
    for (const size_t choices : std::array<size_t, 4>{0, 2, 3, 4}) try_rounds(choices);
    repeat_rounds();
    return std::move(best_);
  }

  PassLists best_in_little_memory() && {
    try_greedy({.patience = kPatience});
    try_greedy({.b1_before_f1 = true, .patience = kPatience});
    try_rounds(0);
    return std::move(best_);
  }

  PassLists best() && {
    try_rounds(0);
    try_greedy({.patience = kPatience});
    // Less idle time than one pass means that memory is plenty: what is left is the greedy plan's
    // patience, and no matter of rounds.
    if (least_ < rounds_.most_work() + rounds_.shortest_pass()) {
      if (least_ > rounds_.most_work()) try_greedy({.patience = 0});
      return std::move(best_);
    }
    for (size_t i = 1; i < kChoices.size(); ++i) try_rounds(i);
    repeat_rounds();
    return std::move(best_);
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

  // With what the best run idled known, all may idle as much where it helps.
  void repeat_rounds() {
    for (double before = kNever; least_of_rounds_ < before;) {
      before = least_of_rounds_;
      rounds_.allow(slack_);
      try_rounds(best_choices_);
    }
  }

  void try_rounds(size_t choices) {
    const double bound = rounds_.most_work() + kHope * (least_ - rounds_.most_work());
    const double cost = rounds_.run(kChoices[choices], bound);
    if (cost < least_of_rounds_) {
      least_of_rounds_ = cost;
      best_choices_ = choices;
      slack_ = rounds_.slack();
    }
    keep(cost, rounds_.lists());
  }
  void try_greedy(const GreedyRules& rules) { keep(greedy_.run(rules, least_), greedy_.lists()); }
  void keep(double cost, PassLists& lists) {
    if (cost >= least_) return;
    least_ = cost;
    std::swap(best_, lists);
  }

  RoundsPlanner rounds_;
  GreedyPlanner greedy_;
  double least_ = kNever;
  double least_of_rounds_ = kNever;
  size_t best_choices_ = 0;
  std::vector<double> slack_;
  PassLists best_;
};

Program plan(const Problem& problem) {
  const Bytes limit = limit_of(problem);
  const Bytes of_1f1b = problem.shape.devices * problem.device_activation();
  Search search(problem, limit);
  if (problem.option<bool>("published_rules").value_or(false)) {
    return {problem.shape, problem.placement, std::move(search).best_published()};
  }
  return {problem.shape, problem.placement,
          kRounding * limit < of_1f1b ? std::move(search).best_in_little_memory()
                                      : std::move(search).best()};
}

bool in_1f1b_memory(const Problem& problem) {
  return uniform(problem) && free_transfers(problem) && b_frees_nothing(problem) &&
         limit_of(problem) == problem.shape.devices * problem.device_activation();
}

const RegisteredSchedule kZbV{{
    .name = "zb-v",
    .summary = "ZB-V's automatic schedule within memory_limit; without one, within 1F1B's memory",
    .source = "Zero Bubble, arXiv 2401.10241, section 6",
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
}};

}  // namespace
}  // namespace pipesim
