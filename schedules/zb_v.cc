// ZB-V (Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, section 6): two chunks per
// device in V-shape and an automatic order within any limit on activation memory. Without a limit
// it is 1F1B's memory, what p microbatches keep on a device.
//
// The best of several plans. `RoundsPlanner` is the paper's heuristic; `GreedyPlanner` plays the
// pipeline in time and is better wherever memory is plenty or very short; `Justifier` shortens the
// best of them. The hand-made ZB-V, V-Half, V-Min and 1F1B-V count where they fit.
//
// Up to 600 passes of a kind (`ProblemSize`), lower limits that make the planners plan otherwise
// are planned for as well, until bounds or the plans say that none can be better, so that more
// memory costs no time. Where stages keep unequal bytes these are many, and limits are rounded down
// to steps (limit_to_plan_for). All plan for messages in steps and for longer ones, since a plan
// for longer messages may be the better one, and the paper's heuristic for messages as they are
// too, within limits as they are: every plan takes what it does with those
// (tests/fidelity/monotone_test.cc counts how often shorter messages still cost time). Of longer
// programs, one within kNearEnough of what none can be below is not justified. O(passes) per plan;
// the planners' headers say why any limit that one microbatch keeps is kept and can be executed.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/order_within.h"
#include "schedules/zb_v_rounds.h"
#include "sim/planning/device_bound.h"
#include "sim/planning/greedy.h"
#include "sim/planning/justify.h"
#include "sim/planning/memory_ladder.h"
#include "sim/planning/planners.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"
#include "sim/planning/windows.h"

namespace pipesim {
namespace {

// What is this near to what no program can be below counts as equal to it.
constexpr double kNear = 1 + 1e-9;
constexpr double kNever = std::numeric_limits<double>::infinity();

Bytes limit_of_1f1b(const Problem& problem) {
  return problem.shape.devices * problem.device_activation();
}
Bytes limit_of(const Problem& problem) {
  return problem.activation_limit.value_or(limit_of_1f1b(problem));
}

Bytes largest_chunk(const Problem& problem) {
  return std::ranges::max_element(problem.stages, {}, &StageCost::activation)->activation;
}

// The best plan so far.
struct Best {
  PlanTime time = {};
  PassLists lists;

  void keep(const PlanTime& other, const PassLists& others) {
    if (other >= time) return;
    time = other;
    lists = others;
  }
};

// The paper's rounds with its four choices, and again with what the best of them idled.
class PublishedRules {
 public:
  explicit PublishedRules(const Problem& problem)
      : no_idle_(problem.shape.devices, 0), rounds_(problem) {}

  // Gives up runs that take `most` or more; without lists where all do.
  Best plan(Bytes limit, const PlanTime& most = {}) {
    best_ = {most, {}};
    rounds_.set_limit(limit);
    rounds_.allow(no_idle_);
    std::array<bool, kChoices.size()> same{};  // as a run before
    for (size_t i = 0; i < kChoices.size(); ++i) {
      if (same[i]) continue;
      run(kChoices[i]);
      for (size_t other = i + 1; other < kChoices.size(); ++other) {
        same[other] = same[other] || rounds_.same_with(kChoices[other]);
      }
    }
    if (best_.lists.empty()) return {};
    for (PlanTime before; best_.time < before;) {
      before = best_.time;
      rounds_.allow(slack_);
      run(choices_);
    }
    return std::move(best_);
  }
  // The most that the last plan wanted and had room for: with any limit from there on up to its own
  // it would have been the same.
  [[nodiscard]] Bytes asked() const { return rounds_.asked(); }

 private:
  static constexpr std::array<RoundsChoices, 4> kChoices{
      {{true, false}, {true, true}, {false, false}, {false, true}}};

  void run(const RoundsChoices& choices) {
    const PlanTime time = rounds_.run(choices, best_.time);
    if (time >= best_.time) return;
    best_.keep(time, rounds_.lists());
    choices_ = choices;
    slack_ = rounds_.slack();
  }

  std::vector<double> no_idle_;
  RoundsPlanner rounds_;
  Best best_;
  RoundsChoices choices_{};    // of the best
  std::vector<double> slack_;  // likewise
};

// Found by experiment; less makes more F0 wait in memory, more makes devices idle.
constexpr double kPatience = 0.3;
// F0 beyond chunk 0's share make F1 wait where memory is short, and keep devices busy elsewhere.
constexpr GreedyRules kPatient{.patience = kPatience};
constexpr GreedyRules kBackwardsFirst{
    .b1_before_f1 = true, .patience = kPatience, .beyond_share = 0.5};
constexpr GreedyRules kImpatient{.patience = 0, .beyond_share = 1};

// The best of the planners' plans, justified, within one limit after the other, lower each time.
class Search {
 public:
  Search(const Problem& problem, std::vector<GreedyRules> rules)
      : least_limit_(problem.device_activation()),
        step_(kSteps * largest_chunk(problem)),
        published_(problem),
        greedy_(problem),
        justify_(problem),
        rules_(std::move(rules)),
        greedy_plans_(rules_.size()) {}

  // The plans that are not the same as within the limit before; of those that take the same the
  // last is meant to be taken. None that takes `most` or more is made; once one takes no more than
  // `least` no other is, and one that takes no more than `enough` is not justified.
  const std::vector<const Best*>& plan(Bytes limit, const PlanTime& least, const PlanTime& enough,
                                       const PlanTime& most = {}) {
    limit_ = limit;
    made_.clear();
    const Plan* best = &plan_rounds(most);
    for (size_t i = 0; i < greedy_plans_.size() && !best->time.reaches(least); ++i) {
      const Plan& plan = plan_greedily(i, std::min(most, best->time));
      if (plan.time < best->time) best = &plan;
    }
    least_ = best->time;
    if (least_ < most && !least_.reaches(enough)) justify(*best);
    return made_;
  }
  // The least of the plans within the last limit, before justification.
  [[nodiscard]] const PlanTime& least() const { return least_; }
  // The highest limit with which not all would be the same again.
  [[nodiscard]] Bytes next_limit() const {
    Bytes most;
    const auto consider = [&](Bytes asked) {
      if (asked <= kRounding * limit_) most = std::max(most, asked);
    };
    consider(rounds_.asked);
    consider(justify_.asked());
    for (const Plan& plan : greedy_plans_) consider(up_to_step(plan.asked));
    return (1 - 1e-9) * most;
  }

 private:
  static constexpr double kSteps = 0.25;  // of a chunk

  struct Plan : Best {
    // With any limit from there on up to the one it was made for, it would be the same.
    Bytes asked{kNever};
    PlanTime given_up = {};  // once it could not take less
  };

  // Both give up plans that cannot take less than `most`.
  const Plan& plan_rounds(const PlanTime& most) {
    if (!is_same(rounds_, limit_, most)) {
      Best made = published_.plan(limit_, most);
      keep(rounds_, std::move(made), published_.asked(), most);
    }
    return rounds_;
  }
  const Plan& plan_greedily(size_t i, const PlanTime& most) {
    const Bytes within = in_steps(limit_);
    Plan& plan = greedy_plans_[i];
    if (is_same(plan, within, most)) return plan;
    greedy_.set_limit(within);
    const PlanTime time = greedy_.run(rules_[i], most);
    Best made{time, time == PlanTime{} ? PassLists{} : greedy_.lists()};
    keep(plan, std::move(made), greedy_.asked(), most);
    return plan;
  }
  [[nodiscard]] static bool is_same(const Plan& plan, Bytes within, const PlanTime& most) {
    return plan.asked <= within && most <= plan.given_up;
  }
  void keep(Plan& plan, Best made, Bytes asked, const PlanTime& most) {
    if (justified_ == &plan) justified_ = nullptr;
    const bool gave_up = made.time == PlanTime{};
    plan = {std::move(made), asked, gave_up ? most : PlanTime{}};
    if (!gave_up) made_.push_back(&plan);
  }

  void justify(const Plan& plan) {
    if (justified_ == &plan && justify_.asked() <= limit_) return;
    justified_ = &plan;
    justify_.set_limit(limit_);
    shorter_.time = justify_.run(plan.lists);
    shorter_.lists.resize(plan.lists.size());
    justify_.save(shorter_.lists);
    made_.push_back(&shorter_);
  }

  // Greedy plans keep few limits: what one microbatch keeps, and steps above that.
  [[nodiscard]] Bytes in_steps(Bytes limit) const {
    if (step_ <= Bytes(0)) return limit;
    return least_limit_ + std::floor(kRounding * ((limit - least_limit_) / step_)) * step_;
  }

  // The least limit that in steps is as much.
  [[nodiscard]] Bytes up_to_step(Bytes asked) const {
    if (step_ <= Bytes(0)) return asked;
    return least_limit_ + std::ceil((asked - least_limit_) / step_ / kRounding) * step_;
  }

  Bytes least_limit_, step_, limit_;
  PublishedRules published_;
  GreedyPlanner greedy_;
  Justifier justify_;
  Plan rounds_;
  std::vector<GreedyRules> rules_;
  std::vector<Plan> greedy_plans_;  // by rules
  const Plan* justified_ = nullptr;
  Best shorter_;
  std::vector<const Best*> made_;  // within the last limit
  PlanTime least_;
};

// Justification was not seen to make the best plan of what takes so many times as much, or idles so
// many times as much; of middling problems hardly.
constexpr double kHope = 1.15;
constexpr double kHopeOfIdle = 4;
constexpr double kHopeOfIdleMiddling = 2;

class ZbV : public LimitPlanner {
 public:
  ZbV(const Problem& problem, OrderSource* source)
      : problem_(problem), size_(size_of(problem)), others_(problem_, source) {}

  Program plan(Bytes limit) override {
    Best best;
    if (problem_.option<bool>("published_rules").value_or(false)) {
      best = PublishedRules(problem_).plan(limit);
    } else if (size_ != ProblemSize::kLarge) {
      try_others(limit, best);
      if (!no_better(best, limit)) try_limits(limit, best);
      if (!free_transfers(problem_) && !no_better(best, limit)) try_published(limit, best);
    } else {
      Search search(problem_, {kPatient, is_short(limit) ? kBackwardsFirst : kImpatient});
      const auto& plans = search.plan(limit, least(limit), enough(limit));
      best = **std::ranges::min_element(plans.rbegin(), plans.rend(), {}, &Best::time);
      try_others(limit, best);
    }
    return {problem_.shape, problem_.placement, std::move(best.lists)};
  }

 private:
  // Of less memory than 1F1B's.
  [[nodiscard]] bool is_short(Bytes limit) const {
    return kRounding * limit < limit_of_1f1b(problem_);
  }
  // None within this limit can be better than what takes so much, or not by much.
  [[nodiscard]] PlanTime least(Bytes within) const {
    return kNear * 1e12 * least_plan_time(problem_, within);
  }
  // What takes so much before justification, within this limit or a lower one, is given up.
  [[nodiscard]] PlanTime hope(Bytes limit, const PlanTime& unjustified) const {
    const double bound = least(limit).time;
    const double factor = size_ == ProblemSize::kSmall ? kHopeOfIdle : kHopeOfIdleMiddling;
    const double idle = unjustified.time - bound;
    return {std::min(bound + factor * idle, kHope * unjustified.time)};
  }
  [[nodiscard]] PlanTime enough(Bytes within) const {
    return (size_ == ProblemSize::kLarge ? kNearEnough : 1) * least(within);
  }
  // With few microbatches what windows allow soon says so too; with many it costs more than it
  // spares.
  [[nodiscard]] bool no_better(const Best& best, Bytes within) const {
    if (best.time.reaches(enough(within))) return true;
    if (problem_.shape.microbatches > problem_.shape.devices) return false;
    const Seconds bound = bound_of_windows(problem_, within, 1).seconds;
    return best.time.time <= kNear * 1e12 * bound.value();
  }

  // The orders of other schedules, until none can be better.
  void try_others(Bytes limit, Best& best) {
    // Where stages are equal and memory is not short, longer iterations were not seen to gain by
    // others unless transfers are longer than passes.
    const Shape& shape = problem_.shape;
    const bool plain = uniform(problem_) && shape.microbatches > shape.devices && !is_short(limit);
    for (const char* made : {"zb-v-handmade", "v-half", "v-min", "1f1b-v"}) {
      if (best.time.reaches(least(limit))) return;
      if (plain && made != std::string_view("zb-v-handmade")) return;
      auto order = others_.within(made, limit, best.time);
      if (order) best.keep(order->time, order->lists);
    }
  }

  // Plans within this limit and lower ones, for messages in steps and for longer ones.
  void try_limits(Bytes limit, Best& best) const {
    for (const Problem& problem : with_messages_to_plan_for(limit)) {
      try_limits(problem, limit, best);
      if (no_better(best, limit)) return;
    }
  }
  // Until none within a lower limit can be better.
  void try_limits(const Problem& problem, Bytes limit, Best& best) const {
    Search search(problem, {kPatient, kBackwardsFirst, kImpatient});
    Justifier as_they_are(problem_);
    PlanTime unjustified;
    for (Bytes within = limit_to_plan_for(problem, limit);;) {
      const PlanTime most = hope(limit, unjustified);
      for (const Best* plan : search.plan(within, least(within), enough(within), most)) {
        best.keep(as_they_are.time(plan->lists), plan->lists);
      }
      if (search.least() >= most) return;
      unjustified = std::min(unjustified, search.least());
      within = limit_to_plan_for(problem, search.next_limit());
      if (within < problem_.device_activation() || no_better(best, within)) return;
    }
  }
  // The problem with its messages in steps, then with longer ones; if middling, first as they are.
  [[nodiscard]] std::vector<Problem> with_messages_to_plan_for(Bytes limit) const {
    // In 1F1B's memory, for which the paper made its heuristic, equal stages were hardly seen to
    // gain by longer ones, but for their makespan by some where there are none.
    const bool usual = uniform(problem_) && problem_.shape.microbatches >= problem_.shape.devices &&
                       !is_short(limit) && limit <= kRounding * limit_of_1f1b(problem_);
    const int steps_of_usual = problem_.objective == Objective::kMakespan ? 1 : 0;
    std::vector<Problem> all =
        with_longer_messages(problem_, usual ? steps_of_usual : most_steps(problem_));
    // Of small problems that would make shorter messages cost time more often.
    const bool too = size_ == ProblemSize::kMiddling && !free_transfers(problem_);
    if (too) all.insert(all.begin(), problem_);
    return all;
  }
  // The paper's rules likewise, for messages as they are.
  void try_published(Bytes limit, Best& best) const {
    PublishedRules rules(problem_);
    PlanTime unjustified;
    for (Bytes within = limit;;) {
      const Best plan = rules.plan(within, hope(limit, unjustified));
      unjustified = std::min(unjustified, plan.time);
      best.keep(plan.time, plan.lists);
      within = (1 - 1e-9) * rules.asked();
      if (within < problem_.device_activation() || no_better(best, within)) return;
    }
  }

  Problem problem_;
  ProblemSize size_;
  OtherOrders others_;
};

Program plan(const Problem& problem) { return ZbV(problem, nullptr).plan(limit_of(problem)); }

bool in_1f1b_memory(const Problem& problem) {
  return problem.objective == Objective::kCost && uniform(problem) && free_transfers(problem) &&
         b_frees_nothing(problem) && limit_of(problem) == limit_of_1f1b(problem);
}

const RegisteredSchedule kZbV{{
    .name = "zb-v",
    .summary = "ZB-V's automatic schedule within memory_limit; without one, within 1F1B's memory",
    .source = "Zero Bubble, arXiv 2401.10241, section 6",
    .order =
        "V-shape, two chunks; the paper's rounds of one B and one F, or a greedy plan in time, "
        "the better one justified; within memory_limit, else p microbatches' memory",
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
}};

}  // namespace
}  // namespace pipesim
