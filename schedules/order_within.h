// Shared parts of planners that take the best of several orders within a memory limit: the orders
// of other schedules, justification, and messages in steps.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/device_bound.h"
#include "sim/planning/plan_time.h"
#include "sim/planning/planners.h"

namespace pipesim {

// Times within this factor of a lower bound count as equal to it.
inline constexpr double kAtBound = 1 + 1e-9;

// Plans that take no more within the limit count as optimal.
inline PlanTime optimal_time(const Problem& problem, Bytes limit) {
  return kAtBound * 1e12 * least_plan_time(problem, limit);
}

// An order that was tried within a limit; where none was found, no lists and an infinite time.
struct OrderWithin {
  PassLists lists;
  PlanTime time;

  // Takes lists of less time: of those that take the same, the first stay.
  template <class Lists>
  void keep_shorter(const PlanTime& other, Lists&& others) {
    if (other >= time) return;
    time = other;
    lists = std::forward<Lists>(others);
  }
};

// The same, remembered. An attempt may be given up once its order takes `most` or more.
struct KnownOrder : OrderWithin {
  PlanTime given_up{0};  // the `most` of the last attempt

  // True if another attempt finds the same.
  [[nodiscard]] bool answers(const PlanTime& most) const {
    return !lists.empty() || most <= given_up;
  }
};

// Problems are small up to 300 passes of a kind and middling up to 600. For both, planners plan
// within all lower limits too, so that more memory never costs time. They also plan for messages in
// steps, so that shorter messages seldom cost time. On middling ones they give up sooner.
enum class ProblemSize { kSmall, kMiddling, kLarge };
ProblemSize size_of(const Problem& problem);

// The limit to plan for in place of the given one. Where all stages keep the same bytes, plans tell
// few limits apart and the limit stays. Otherwise it is rounded down to a thirty-second of one
// microbatch's bytes.
Bytes limit_to_plan_for(const Problem& problem, Bytes limit);

// Lengthens every message to a whole number of steps, at least `least`. A step is a sixteenth of
// the mean time of a device's forwards of a microbatch. A heuristic's order depends on small
// differences; messages that round to the same steps give the same order.
Problem with_messages_in_steps(Problem problem, int least = 0);
// The same with a least of none, one and so on up to `most` steps, as far as they differ. A plan
// for longer messages may be the better one.
std::vector<Problem> with_longer_messages(const Problem& problem, int most);
// Four of small problems, else one.
int most_steps(const Problem& problem);

// Seconds in whole picoseconds, as plans are compared: the sums of unlike passes then tie exactly
// where the times as written do.
Problem in_ticks(Problem problem);

// Shortened by justification (sim/planning/justify.h) within a limit that it keeps.
OrderWithin justified(OrderWithin order, const Problem& problem, Bytes limit);

// Orders of schedules without a limit, for one problem, which they must accept. Their BW become B
// and W, which delays no pass and raises no peak. Each is planned when it is first asked for, from
// `source` if there is one. Both outlive them.
class OtherOrders {
 public:
  OtherOrders(const Problem& problem, OrderSource* source) : problem_(problem), source_(source) {}
  // Nothing where it takes `most` or more, or peaks above the limit. Requires a schedule whose
  // program has one direction and no passes but F, B, W and BW.
  std::optional<OrderWithin> within(std::string_view schedule, Bytes limit, const PlanTime& most);

 private:
  struct Known : KnownOrder {
    std::shared_ptr<const Program> program;
    Bytes peak;  // with the lists
  };

  void attempt(std::string_view schedule, Known& known, const PlanTime& most) const;

  const Problem& problem_;
  OrderSource* source_;
  std::map<std::string_view, Known> orders_;
};

}  // namespace pipesim
