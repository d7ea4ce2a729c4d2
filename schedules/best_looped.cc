#include "schedules/best_looped.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "schedules/order_within.h"
#include "sim/execution/with_backwards_apart.h"
#include "sim/planning/room.h"
#include "sim/planning/run_within.h"
#include "sim/planning/schedule.h"

namespace pipesim {
namespace {

class BestLooped : public LimitPlanner {
 public:
  explicit BestLooped(const Problem& problem) : problem_(problem), ticks_(in_ticks(problem)) {
    add("interleaved-1f1b", {});
    const int p = problem.shape.devices;
    for (int group = p; group >= 1; group = group == 1 ? 0 : (group + 1) / 2) {
      add("gis", {{"group_size", static_cast<long>(group)}});
    }
  }

  Program plan(Bytes limit) override {
    OrderWithin best;
    for (const PassLists& order : orders_) consider(order, limit, best);
    return {problem_.shape, problem_.placement, std::move(best.lists)};
  }

 private:
  // Schedules that refuse the shape are left out.
  void add(const char* name, ScheduleOptions options) {
    Problem problem = problem_;
    problem.options = std::move(options);
    problem.recompute_chunks = 0;
    const Schedule& schedule = *find_schedule(name);
    if (schedule.refusal(problem)) return;
    orders_.push_back(with_backwards_apart(schedule.plan(problem)).lists());
  }

  // Counts the order where it keeps the limit, and put into time within it.
  void consider(const PassLists& order, Bytes limit, OrderWithin& best) const {
    const Evaluation whole = evaluate({problem_.shape, problem_.placement, order}, problem_);
    const bool fits = is_within(whole.peak_activation(), limit);
    const PlanTime time = plan_time(whole, problem_.objective);
    if (fits) best.keep_shorter(time, order);
    for (const bool overtake : {false, true}) {
      WithinResult result = run_within(ticks_, limit, order, {!fits, overtake}, best.time);
      if (result.lists.empty()) continue;
      OrderWithin shorter = justified({std::move(result.lists), result.time}, problem_, limit);
      best.keep_shorter(shorter.time, std::move(shorter.lists));
    }
  }

  Problem problem_, ticks_;
  std::vector<PassLists> orders_;
};

}  // namespace

std::unique_ptr<LimitPlanner> plan_best_looped(const Problem& problem, OrderSource* /*source*/) {
  return std::make_unique<BestLooped>(problem);
}

}  // namespace pipesim
