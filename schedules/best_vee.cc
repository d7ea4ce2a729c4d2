#include "schedules/best_vee.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "schedules/order_within.h"
#include "schedules/vee_blocks.h"
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

constexpr double kNever = std::numeric_limits<double>::infinity();

constexpr std::array kOtherOrders{"zb-v-handmade", "v-half", "v-min", "1f1b-v"};

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
  const std::vector<const OrderWithin*>& plan(Bytes limit, const PlanTime& least,
                                              const PlanTime& enough, const PlanTime& most = {}) {
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

  struct Plan : KnownOrder {
    // With any limit from there on up to the one it was made for, it would be the same.
    Bytes asked{kNever};
  };

  // Both give up plans that cannot take less than `most`.
  const Plan& plan_rounds(const PlanTime& most) {
    if (!is_same(rounds_, limit_, most)) {
      OrderWithin made = published_.plan(limit_, most);
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
    keep(plan, {time == PlanTime{} ? PassLists{} : greedy_.lists(), time}, greedy_.asked(), most);
    return plan;
  }
  [[nodiscard]] static bool is_same(const Plan& plan, Bytes within, const PlanTime& most) {
    return plan.asked <= within && plan.answers(most);
  }
  void keep(Plan& plan, OrderWithin made, Bytes asked, const PlanTime& most) {
    if (justified_ == &plan) justified_ = nullptr;
    plan = {{std::move(made), most}, asked};
    if (!plan.lists.empty()) made_.push_back(&plan);
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
  PublishedRounds published_;
  GreedyPlanner greedy_;
  Justifier justify_;
  Plan rounds_;
  std::vector<GreedyRules> rules_;
  std::vector<Plan> greedy_plans_;  // by rules
  const Plan* justified_ = nullptr;
  OrderWithin shorter_;
  std::vector<const OrderWithin*> made_;  // within the last limit
  PlanTime least_;
};

// Justification was not seen to make the best plan of what takes so many times as much, or idles so
// many times as much; of middling problems hardly.
constexpr double kHope = 1.15;
constexpr double kHopeOfIdle = 4;
constexpr double kHopeOfIdleMiddling = 2;

class TimedPlans {
 public:
  explicit TimedPlans(const Problem& problem) : problem_(problem), size_(size_of(problem)) {}

  [[nodiscard]] OrderWithin plan(Bytes limit) const {
    OrderWithin best;
    if (size_ != ProblemSize::kLarge) {
      try_limits(limit, best);
      if (!no_better(best, limit)) try_published(limit, best);
    } else {
      Search search(problem_, {kPatient, is_short(limit) ? kBackwardsFirst : kImpatient});
      const auto& plans = search.plan(limit, least(limit), enough(limit));
      best = **std::ranges::min_element(plans.rbegin(), plans.rend(), {}, &OrderWithin::time);
    }
    return best;
  }

 private:
  // Less memory than 1F1B's.
  [[nodiscard]] bool is_short(Bytes limit) const {
    return kRounding * limit < memory_of_1f1b(problem_);
  }
  // A lower bound for plans within this limit.
  [[nodiscard]] PlanTime least(Bytes within) const { return optimal_time(problem_, within); }
  // Plans that take so much before justification are given up, within this limit or a lower one.
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
  [[nodiscard]] bool no_better(const OrderWithin& best, Bytes within) const {
    if (best.time.reaches(enough(within))) return true;
    if (problem_.shape.microbatches > problem_.shape.devices) return false;
    const Seconds bound = bound_of_windows(problem_, within, 1).seconds;
    return best.time.time <= kAtBound * 1e12 * bound.value();
  }

  // Plans within this limit and lower ones, for messages in steps and for longer ones.
  void try_limits(Bytes limit, OrderWithin& best) const {
    for (const Problem& problem : with_messages_to_plan_for()) {
      try_limits(problem, limit, best);
      if (no_better(best, limit)) return;
    }
  }
  // Until none within a lower limit can be better.
  void try_limits(const Problem& problem, Bytes limit, OrderWithin& best) const {
    Search search(problem, {kPatient, kBackwardsFirst, kImpatient});
    Justifier as_they_are(problem_);
    PlanTime unjustified;
    for (Bytes within = limit_to_plan_for(problem, limit);;) {
      const PlanTime most = hope(limit, unjustified);
      for (const OrderWithin* plan : search.plan(within, least(within), enough(within), most)) {
        best.keep_shorter(as_they_are.time(plan->lists), plan->lists);
      }
      if (search.least() >= most) return;
      unjustified = std::min(unjustified, search.least());
      within = limit_to_plan_for(problem, search.next_limit());
      if (within < problem_.device_activation() || no_better(best, within)) return;
    }
  }
  // The problem with its messages in steps, then with longer ones; if middling, first as they are.
  [[nodiscard]] std::vector<Problem> with_messages_to_plan_for() const {
    std::vector<Problem> all = with_longer_messages(problem_, most_steps(problem_));
    // For small problems that would make shorter messages cost time more often.
    const bool too = size_ == ProblemSize::kMiddling && !free_transfers(problem_);
    if (too) all.insert(all.begin(), problem_);
    return all;
  }
  // The paper's rules likewise, for messages as they are.
  void try_published(Bytes limit, OrderWithin& best) const {
    PublishedRounds rules(problem_);
    PlanTime unjustified;
    for (Bytes within = limit;;) {
      const OrderWithin plan = rules.plan(within, hope(limit, unjustified));
      unjustified = std::min(unjustified, plan.time);
      best.keep_shorter(plan.time, plan.lists);
      within = (1 - 1e-9) * rules.asked();
      if (within < problem_.device_activation() || no_better(best, within)) return;
    }
  }

  const Problem& problem_;
  ProblemSize size_;
};

// Justification was not seen to make up for more.
constexpr double kClose = 1.05;
// Passes of a kind; of 2.6 times as many justification took a quarter of the CPU.
constexpr int kTooLong = 200'000;

class BestVee : public LimitPlanner {
 public:
  BestVee(const Problem& problem, OrderSource* source)
      : problem_(problem),
        justifies_(size_of(problem) != ProblemSize::kSmall &&
                   problem.shape.devices * problem.shape.microbatches <= kTooLong),
        others_(problem_, source),
        timed_(problem_),
        blocks_(problem) {}

  Program plan(Bytes limit) override {
    OrderWithin timed = timed_.plan(limit);
    const PlanTime time = plan_time(
        evaluate({problem_.shape, problem_.placement, timed.lists}, problem_), problem_.objective);
    OrderWithin best = blocks_.best(limit, kAtBound * time);
    const PlanTime least = optimal_time(problem_, limit);
    if (justifies_ && !best.time.reaches(least) && best.time < kClose * time) {
      best = justified(std::move(best), problem_, limit);
    }
    best.keep_shorter(time, std::move(timed.lists));
    for (const char* made : kOtherOrders) {
      if (best.time.reaches(least)) break;
      const PlanTime bound = bound_of_claimed_peak(*find_schedule(made), problem_);
      if (1e12 * bound < kAtBound * best.time) consider(made, limit, best);
    }
    return {problem_.shape, problem_.placement, std::move(best.lists)};
  }

 private:
  void consider(const char* made, Bytes limit, OrderWithin& best) {
    auto order = others_.within(made, limit, (justifies_ ? kClose : 1) * best.time);
    if (!order) return;
    if (justifies_) order = justified(std::move(*order), problem_, limit);
    best.keep_shorter(order->time, std::move(order->lists));
  }

  Problem problem_;
  bool justifies_;
  OtherOrders others_;
  TimedPlans timed_;
  BlockPlanner blocks_;
};

}  // namespace

std::unique_ptr<LimitPlanner> plan_best_vee(const Problem& problem, OrderSource* source) {
  return std::make_unique<BestVee>(problem, source);
}

}  // namespace pipesim
