// ZB-V (Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, section 6): two chunks per
// device in V-shape and an automatic order within any limit on activation memory. Without a limit
// it is 1F1B's memory, what p microbatches keep on a device.
//
// The best of several plans. `RoundsPlanner` is the paper's heuristic; `GreedyPlanner` plays the
// pipeline in time and is better wherever memory is plenty or very short. Both plan for the limit
// and for lower ones: up to kThorough passes of a kind for every lower limit that makes them plan
// otherwise and that no bound rules out (the greedy one in steps of a quarter of a chunk), so that
// more memory costs them no time, beyond for every rung of a ladder (sim/planning/memory_ladder.h).
// The hand-made ZB-V, V-Half, V-Min, 1F1B-V and the best of a few building blocks
// (schedules/vee_blocks.h) count where they fit and may win; of the blocks more memory can choose
// worse ones (tests/fidelity/monotone_test.cc counts). O(passes) per plan; the planners' headers
// say why any limit that one microbatch keeps is kept and can be executed.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/order_within.h"
#include "schedules/vee_blocks.h"
#include "schedules/zb_v_rounds.h"
#include "sim/execution/evaluate.h"
#include "sim/planning/device_bound.h"
#include "sim/planning/greedy.h"
#include "sim/planning/memory_ladder.h"
#include "sim/planning/planners.h"
#include "sim/planning/schedule.h"
#include "sim/planning/windows.h"

namespace pipesim {
namespace {

// What is this near to what no program can be below counts as equal to it.
constexpr double kNear = 1 + 1e-9;
constexpr double kNever = std::numeric_limits<double>::infinity();

Bytes limit_of(const Problem& problem) {
  return problem.activation_limit.value_or(problem.shape.devices * problem.device_activation());
}

Bytes largest_chunk(const Problem& problem) {
  return std::ranges::max_element(problem.stages, {}, &StageCost::activation)->activation;
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

// All plans within one limit after the other, lower each time: of those, what would be the same as
// within the limit before is left out.
class Search {
 public:
  Search(const Problem& problem, Best& best)
      : least_(problem.device_activation()),
        step_(kSteps * largest_chunk(problem)),
        rounds_(problem),
        greedy_(problem),
        best_(best) {
    greedy_asked_.fill(Bytes(kNever));
  }

  void set_limit(Bytes limit) {
    limit_ = limit;
    same_rounds_ = set_before_ && rounds_.asked() <= limit;
    set_before_ = true;
    if (same_rounds_) return;
    rounds_.set_limit(limit);
    least_of_rounds_ = kNever;
    same_ = {};
    rounds_.allow(std::vector<double>(best_.lists.size(), 0));
  }
  // The highest limit with which not all would be the same again.
  [[nodiscard]] Bytes next_limit() const {
    return (1 - 1e-9) * std::max(rounds_.asked(), *std::ranges::max_element(greedy_asked_));
  }

  // The paper's choices, and repetition with what the best of them idled: as if nothing had been
  // tried before.
  void try_published() {
    if (same_rounds_ || rounds_.least() >= best_.cost) return;
    Best published;
    published.lists.resize(best_.lists.size());
    std::swap(best_, published);
    for (const size_t choices : std::array<size_t, 4>{0, 2, 3, 4}) {
      try_choices(choices);
    }
    repeat_rounds(true);
    std::swap(best_, published);
    best_.keep(published.cost, published.lists);
  }

  // Unless `thorough`, without the second rules, which seldom gain, and until a plan is good
  // enough.
  void try_greedy(bool thorough) {
    const Bytes limit = in_steps(limit_);
    for (size_t rules = 0; rules < kRules.size(); ++rules) {
      const bool enough = rules == 1 || best_.cost <= kNearEnough * rounds_.most_work();
      if (greedy_asked_[rules] <= limit || (enough && !thorough)) continue;
      greedy_.set_limit(limit);
      best_.keep(greedy_.run(kRules[rules], best_.cost), greedy_.lists());
      greedy_asked_[rules] = greedy_.asked();
    }
  }

  // Unless `thorough`, gives up early what is not near the best so far.
  void try_all(bool thorough) {
    if (thorough) {
      try_published();
      try_greedy(true);
      return;
    }
    if (!same_rounds_) try_choices(0);
    try_greedy(false);
    if (same_rounds_) return;
    for (size_t i = 1; i < kChoices.size(); ++i) try_choices(i);
    repeat_rounds(false);
  }

 private:
  // The paper's four choices, and one that lets a W fill a gap that is a little too short for it,
  // found by experiment.
  static constexpr std::array<RoundsChoices, 5> kChoices{
      {{true, false, 1}, {true, false, 0.7}, {true, true, 1}, {false, false, 1}, {false, true, 1}}};
  // Found by experiment; less makes more F0 wait in memory, more makes devices idle.
  static constexpr double kPatience = 0.3;
  // F0 beyond chunk 0's share make F1 wait where memory is short, and keep devices busy elsewhere.
  static constexpr std::array<GreedyRules, 3> kRules{
      {{.patience = kPatience},
       {.b1_before_f1 = true, .patience = kPatience, .beyond_share = 0.5},
       {.patience = 0, .beyond_share = 1}}};
  static constexpr double kSteps = 0.25;  // of a chunk
  // Rounds that idle this much longer than the best plan so far may still improve when repeated.
  static constexpr double kHope = 1.25;

  // Greedy plans keep few limits: what one microbatch keeps, and steps above that.
  [[nodiscard]] Bytes in_steps(Bytes limit) const {
    if (step_ <= Bytes(0)) return limit;
    return least_ + std::floor(kRounding * ((limit - least_) / step_)) * step_;
  }

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

  void try_choices(size_t choices) {
    if (same_[choices]) return;
    best_.keep(try_rounds(choices), rounds_.lists());
    for (size_t i = 0; i < kChoices.size(); ++i) {
      same_[i] = same_[i] || rounds_.same_with(kChoices[i]);
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
  [[nodiscard]] double hoped(double cost) const {
    return rounds_.most_work() + kHope * (cost - rounds_.most_work());
  }

  Bytes least_, step_;
  RoundsPlanner rounds_;
  GreedyPlanner greedy_;
  Best& best_;
  Bytes limit_;
  bool set_before_ = false;
  bool same_rounds_ = false;  // as within the limit before
  std::array<Bytes, kRules.size()> greedy_asked_;
  double least_of_rounds_ = kNever;
  std::array<bool, kChoices.size()> same_{};  // as a run that was tried within the limit
  size_t best_choices_ = 0;
  std::vector<double> slack_;
};

// Up to so many passes of a kind, plans for transfers so much longer count too.
constexpr int kSmall = 300;
constexpr double kLonger = 1.3;
constexpr BlockEffort kFewBlocks{.turns = 1, .built = 8, .built_passes = 0};

Seconds windows_of_first_device(const Problem& problem, Bytes limit) {
  return bound_of_windows(problem, limit, Objective::kCost, 1).seconds;
}

class ZbV : public LimitPlanner {
 public:
  ZbV(const Problem& problem, OrderSource* source)
      : problem_(problem),
        thorough_(problem.shape.devices * problem.shape.microbatches <= kThorough),
        others_(problem_, source) {}

  Program plan(Bytes limit) override {
    Best best;
    best.lists.resize(problem_.shape.devices);
    Search search(problem_, best);
    search.set_limit(limit);
    if (problem_.option<bool>("published_rules").value_or(false)) {
      search.try_published();
    } else {
      search.try_all(thorough_);
      const Bytes next = search.next_limit();
      try_others(limit, best);
      try_lower(limit, next, search, best);
      try_longer_transfers(limit, best);
    }
    return {problem_.shape, problem_.placement, std::move(best.lists)};
  }

 private:
  // That none within this limit can be better.
  [[nodiscard]] bool enough(const Best& best, Bytes within) const {
    const double near = thorough_ ? kNear : kNearEnough;
    return best.cost <= near * 1e12 * bound_of_devices(problem_, within).value();
  }
  // With few microbatches what windows allow soon says so too; with many it costs more than it
  // spares.
  [[nodiscard]] bool no_better(const Best& best, Bytes within) const {
    if (enough(best, within)) return true;
    if (!thorough_ || problem_.shape.microbatches > problem_.shape.devices) return false;
    return best.cost <= kNear * 1e12 * windows_of_first_device(problem_, within).value();
  }

  // The orders of other schedules, until none can be better.
  void try_others(Bytes limit, Best& best) {
    const auto keep = [&best](std::optional<OrderWithin> order) {
      if (order) best.keep(order->cost.value() * 1e12, order->lists);
    };
    // Where stages are equal and memory is not short, longer iterations were not seen to gain by
    // others unless transfers are longer than passes.
    const Shape& shape = problem_.shape;
    const bool repeats = shape.microbatches > shape.devices;  // fewer never repeat a block
    const bool plain = uniform(problem_) && repeats &&
                       kRounding * limit >= shape.devices * problem_.device_activation();
    for (const char* made : {"zb-v-handmade", "v-half", "v-min", "1f1b-v"}) {
      if (enough(best, limit) || (plain && made != std::string_view("zb-v-handmade"))) return;
      const OtherOrder& order = others_.of(made);
      if (order.cost().value() * 1e12 < best.cost) keep(order.within(limit));
    }
    if (!repeats || enough(best, limit)) return;
    if (!blocks_) blocks_.emplace(problem_, kFewBlocks);
    keep(blocks_->best(limit, Seconds(kNear * 1e-12 * best.cost)));
  }

  void try_lower(Bytes limit, Bytes next, Search& search, Best& best) {
    const auto try_within = [&](Bytes within) {
      if (within < problem_.device_activation() || no_better(best, within)) return false;
      search.set_limit(within);
      search.try_all(thorough_);
      return true;
    };
    if (thorough_) {
      for (Bytes within = next; try_within(within);) within = search.next_limit();
    } else {
      for (const Bytes rung : rungs_below(problem_, limit)) {
        if (!try_within(rung)) break;
      }
    }
  }

  // What is planned for longer messages, within every limit too: which order the heuristics come to
  // follows from small differences, and so shorter messages seldom cost time.
  void try_longer_transfers(Bytes limit, Best& best) {
    const Shape& shape = problem_.shape;
    if (shape.devices * shape.microbatches > kSmall || free_transfers(problem_)) return;
    Problem longer = problem_;
    for (StageCost& cost : longer.stages) cost.transfer = kLonger * cost.transfer;
    Best planned;
    planned.lists.resize(shape.devices);
    Search search(longer, planned);
    for (Bytes within = limit; within >= problem_.device_activation();
         within = search.next_limit()) {
      if (no_better(best, within)) return;
      planned.cost = kNever;
      search.set_limit(within);
      search.try_all(thorough_);
      if (planned.cost == kNever) continue;
      const Evaluation truth = evaluate({shape, problem_.placement, planned.lists}, problem_);
      best.keep(truth.cost.value() * 1e12, planned.lists);
    }
  }

  Problem problem_;
  bool thorough_;
  OtherOrders others_;
  std::optional<BlockPlanner> blocks_;
};

Program plan(const Problem& problem) { return ZbV(problem, nullptr).plan(limit_of(problem)); }

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
    .planner = [](const Problem& problem,
                  Planners& planners) { return std::make_unique<ZbV>(problem, planners.source()); },
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
