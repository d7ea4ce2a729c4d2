// The key that planners compare plans by: the time that the problem's objective counts. Equal
// makespans compare by the longest span, where bubbles show; a further tie keeps the first plan, as
// in the papers. In picoseconds, whole ones where ties matter.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>

#include "sim/execution/evaluate.h"
#include "sim/pipeline/problem.h"

namespace pipesim {

// Whole picoseconds: sums of unlike passes then tie exactly where the times as written do.
inline double ticks(Seconds seconds) { return std::round(seconds.value() * 1e12); }

// When an input that nobody sends is there.
inline constexpr double kNoWait = std::numeric_limits<double>::lowest();

struct PlanTime {
  double time = std::numeric_limits<double>::infinity();
  double span = 0;  // of a makespan; else 0

  friend auto operator<=>(const PlanTime&, const PlanTime&) = default;
  // Neither is longer.
  [[nodiscard]] bool reaches(const PlanTime& bound) const {
    return time <= bound.time && span <= bound.span;
  }
};

inline PlanTime operator*(double factor, const PlanTime& of) {
  return {factor * of.time, factor * of.span};
}

// Adds up a plan's time, device by device.
class PlanTimer {
 public:
  explicit PlanTimer(Objective objective) : objective_(objective) {}

  void add(double first_start, double last_end) {
    end_ = std::max(end_, last_end);
    span_ = std::max(span_, last_end - first_start);
  }
  [[nodiscard]] PlanTime time() const {
    return objective_ == Objective::kMakespan ? PlanTime{end_, span_} : PlanTime{span_};
  }

 private:
  Objective objective_;
  double end_ = 0, span_ = 0;
};

inline PlanTime plan_time(const Evaluation& result, Objective objective) {
  PlanTimer timer(objective);
  for (const DeviceEvaluation& device : result.devices) {
    timer.add(std::round(1e12 * device.first_start.value()),
              std::round(1e12 * device.last_end.value()));
  }
  return timer.time();
}

// A bound in seconds that plans must beat or tie with.
inline Seconds seconds_above(const PlanTime& time) { return Seconds(1e-12 * (time.time + 1)); }

}  // namespace pipesim
