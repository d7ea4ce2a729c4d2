// The best V-shaped schedule within a limit on activation memory, by the search for a building
// block of Qi et al., Pipeline Parallelism with Controllable Memory, arXiv 2405.15362
// (schedules/vee_blocks.h). `v-zb` sets the limit to what p microbatches keep, which is 1F1B's
// memory and leaves no bubble where all passes take equally long.
//
// V-Half, V-Min, 1F1B-V, the hand-made ZB-V and the plan of zb-v count too where they fit, unless
// the block's schedule costs what none can be below, or what none with their peak can. The best
// block and what costs little more are justified, but not of small problems, of which zb-v has
// justified plans within all lower limits, nor of very long ones.
#include <memory>
#include <utility>

#include "schedules/order_within.h"
#include "schedules/vee_blocks.h"
#include "sim/planning/device_bound.h"
#include "sim/planning/planners.h"
#include "sim/planning/room.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

// What is this near to what no program can be below counts as equal to it.
constexpr double kNear = 1 + 1e-9;
// Justification was not seen to make up for more.
constexpr double kClose = 1.05;
// Passes of a kind; of 2.6 times as many justification took a quarter of the CPU.
constexpr int kTooLong = 200'000;

class VSearch : public LimitPlanner {
 public:
  VSearch(const Problem& problem, Planners& planners)
      : problem_(problem),
        justifies_(size_of(problem) != ProblemSize::kSmall &&
                   problem.shape.devices * problem.shape.microbatches <= kTooLong),
        planners_(planners),
        blocks_(problem),
        others_(problem_, planners.source()) {}

  Program plan(Bytes limit) override {
    const auto zb_v = planners_.plan(*find_schedule("zb-v"), limit);
    const Evaluation of_zb_v = evaluate(*zb_v, problem_);
    const PlanTime time_of_zb_v = plan_time(of_zb_v, problem_.objective);
    OrderWithin best = blocks_.best(limit, kNear * time_of_zb_v);
    const PlanTime least = kNear * 1e12 * least_plan_time(problem_, limit);
    if (justifies_ && !best.time.reaches(least) && best.time < kClose * time_of_zb_v) {
      best = justified(std::move(best), problem_, limit);
    }
    if (time_of_zb_v < best.time && of_zb_v.peak_activation() <= kRounding * limit) {
      best = {zb_v->lists(), time_of_zb_v};
    }
    for (const char* made : {"zb-v-handmade", "v-half", "v-min", "1f1b-v"}) {
      if (best.time.reaches(least)) break;
      const PlanTime bound = bound_of_claimed_peak(*find_schedule(made), problem_);
      if (1e12 * bound < kNear * best.time) consider(made, limit, best);
    }
    return {problem_.shape, problem_.placement, std::move(best.lists)};
  }

 private:
  void consider(const char* made, Bytes limit, OrderWithin& best) {
    auto order = others_.within(made, limit, (justifies_ ? kClose : 1) * best.time);
    if (!order) return;
    if (justifies_) order = justified(std::move(*order), problem_, limit);
    if (order->time < best.time) best = std::move(*order);
  }

  Problem problem_;
  bool justifies_;
  Planners& planners_;
  BlockPlanner blocks_;
  OtherOrders others_;
};

Bytes limit_1p(const Problem& problem) {
  return problem.shape.devices * problem.device_activation();
}
Bytes limit_given(const Problem& problem) {
  return problem.activation_limit.value_or(limit_1p(problem));
}

bool is_exact(const Problem& problem, Bytes limit) {
  const StageCost& cost = problem.stage(0);
  return problem.objective == Objective::kCost && uniform(problem) && free_transfers(problem) &&
         b_frees_nothing(problem) && cost.forward == cost.backward_input &&
         cost.forward == cost.backward_weight &&
         problem.shape.microbatches >= 2 * problem.shape.devices && limit >= limit_1p(problem);
}

Placement vee(int devices, int /*chunks*/) { return Placement::vee(devices); }

// The two records differ in nothing but their limit.
template <Bytes (*limit_of)(const Problem&)>
struct Within {
  static Program plan(const Problem& problem) {
    Planners planners(problem);
    return VSearch(problem, planners).plan(limit_of(problem));
  }
  static bool holds(const Problem& problem) { return is_exact(problem, limit_of(problem)); }
  static Seconds no_bubble(const Problem& /*problem*/) { return Seconds(0); }
  static int in_flight(const Problem& problem, int /*device*/) { return 2 * problem.shape.devices; }

  static Schedule record(std::string name, std::string summary, std::string source) {
    const std::string_view domain =
        "F = B = W, equal stages, free transfers, B frees nothing, m >= 2p, limit >= p "
        "microbatches";
    const std::string_view gap =
        "no closed form is known where passes differ, memory is short or m < 2p";
    return {.name = std::move(name),
            .summary = std::move(summary),
            .source = std::move(source),
            .order = "V-shape, two chunks; the best schedule that repeats a building block",
            .default_chunks = 2,
            .min_chunks = 2,
            .max_chunks = 2,
            .place = vee,
            .plan = plan,
            .claims = {.bubble = {"0", domain, gap, holds, no_bubble},
                       .peak = {"2p chunks", domain, gap, holds, in_flight}},
            .nearest_with_flags = "zb-v",
            .left_out_of_plan = "its plan takes about a second"};
  }
};

const RegisteredSchedule kVZb{Within<limit_1p>::record(
    "v-zb", "V-shape without a bubble at equal times, within 1F1B's memory",
    "Controllable Memory, arXiv 2405.15362, sections 3 and 4")};

Schedule v_search() {
  Schedule record = Within<limit_given>::record(
      "v-search", "the best V-shaped building block within memory_limit; without one as v-zb",
      "Controllable Memory, arXiv 2405.15362, section 4 and appendix A");
  record.memory_limit = true;
  record.planner = [](const Problem& problem, Planners& planners) {
    return std::make_unique<VSearch>(problem, planners);
  };
  return record;
}

const RegisteredSchedule kVSearch{v_search()};

}  // namespace
}  // namespace pipesim
