// This project's own schedule: the best order that several planners find for a placement within a
// limit on activation memory, 1F1B's where none is given. A record for each placement.
//
//   linear  one chunk per device: the heuristic of Zero Bubble with more choices, and the orders of
//           1F1B, ZB-H1 and ZB-H2 (schedules/zb_planner.h)
//   vee     two chunks in V-shape: ZB-V's rounds, a greedy plan, building blocks and the orders of
//           hand-made ZB-V, V-Half, V-Min and 1F1B-V, justified (schedules/best_vee.h)
//   looped  two chunks or more, interleaved: the orders of interleaved 1F1B and GIS, put into time
//           within the limit and justified (schedules/best_looped.h)
//
// Never slower than those fixed orders where they keep the limit. A heuristic: a better order may
// exist, and `pipesim search` looks further.
#include <memory>
#include <string>
#include <utility>

#include "schedules/best_looped.h"
#include "schedules/best_vee.h"
#include "schedules/zb_planner.h"
#include "sim/planning/memory_ladder.h"
#include "sim/planning/planners.h"
#include "sim/planning/schedule.h"

namespace pipesim::best {
namespace {

class BestLinear : public LimitPlanner {
 public:
  explicit BestLinear(Problem problem) : problem_(std::move(problem)) {}
  Program plan(Bytes limit) override {
    return {problem_.shape, problem_.placement, ZbPlanner(problem_).best(limit)};
  }

 private:
  Problem problem_;
};

std::unique_ptr<LimitPlanner> plan_best_linear(const Problem& problem, OrderSource* /*source*/) {
  return std::make_unique<BestLinear>(problem);
}

using MakePlanner = std::unique_ptr<LimitPlanner> (*)(const Problem&, OrderSource*);

template <MakePlanner make>
Schedule record(std::string placement, const std::string& order) {
  constexpr std::string_view kNone = "the order depends on every time";
  return {
      .name = "best",
      .summary =
          "the best order that several planners find within memory_limit; without one, "
          "within 1F1B's memory",
      .source = "this project: docs/reference/schedules.md",
      .origin = Origin::kOurs,
      .placement = PlacementChoice{.name = std::move(placement)},
      .order = order,
      .options = {{.name = "placement",
                   .type = OptionSpec::Type::kText,
                   .help = "of the chunks: linear, one per device; vee, two in V-shape; looped, "
                           "two or more",
                   .default_text = "vee"}},
      .memory_limit = true,
      .plan =
          [](const Problem& problem) {
            return make(problem, nullptr)->plan(limit_or_1f1b(problem));
          },
      .planner = make,
      .claims = {.bubble = {.no_closed_form = kNone}, .peak = {.no_closed_form = kNone}}};
}

Schedule linear() {
  Schedule best = record<plan_best_linear>(
      "linear", "the best of Zero Bubble's heuristic in 27 variants and of 1F1B, ZB-H1 and ZB-H2");
  best.backward_acquires = true;
  best.no_flags = "its order is this project's own";
  best.nearest_with_flags = "zb";
  return best;
}

Schedule vee() {
  Schedule best = record<plan_best_vee>(
      "vee",
      "V-shape, two chunks; the best of ZB-V's rounds, a greedy plan, building blocks and "
      "the hand-made orders, justified");
  best.placement->is_default = true;
  best.default_chunks = best.min_chunks = best.max_chunks = 2;
  best.place = [](int devices, int) { return Placement::vee(devices); };
  best.no_flags = "its order is this project's own";
  best.nearest_with_flags = "zb-v";
  return best;
}

Schedule looped() {
  Schedule best = record<plan_best_looped>(
      "looped", "interleaved; the best of interleaved 1F1B and GIS, put into time and justified");
  best.default_chunks = best.min_chunks = 2;
  best.max_chunks = 1024;
  best.no_flags = "its order is this project's own";
  best.nearest_with_flags = "gis";
  best.left_out_of_plan = "plan tries the orders that it starts from";
  return best;
}

const RegisteredSchedule kLinear{linear()};
const RegisteredSchedule kVee{vee()};
const RegisteredSchedule kLooped{looped()};

}  // namespace
}  // namespace pipesim::best
