// What planners share that take the best of several orders within a memory limit: the orders of
// other schedules, and justification.
#pragma once

#include <map>
#include <optional>
#include <string_view>

#include "sim/core/units.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/planning/planners.h"

namespace pipesim {

struct OrderWithin {
  PassLists lists;
  Seconds cost;  // longest span of a device
};

// Of such problems planners plan for all lower limits too, so that more memory never costs time.
bool is_small(const Problem& problem);

// Shortened by justification (sim/planning/justify.h) within a limit that it keeps.
OrderWithin justified(OrderWithin order, const Problem& problem, Bytes limit);

// The order of a program, as it is but for BW, which become B and W: none of its passes is later
// then, nor any peak higher. Requires a program whose directions and passes are those of F, B, W
// and BW.
class OtherOrder {
 public:
  OtherOrder(const Program& whole, const Problem& problem);
  // Nothing where it peaks above the limit.
  [[nodiscard]] std::optional<OrderWithin> within(Bytes limit) const;
  [[nodiscard]] Seconds cost() const { return order_.cost; }

 private:
  OrderWithin order_;
  Bytes peak_;
};

// Orders of schedules that take no limit, for one problem, which they must accept: each is planned
// when it is first asked for, from `source` if there is one. Both outlive them.
class OtherOrders {
 public:
  OtherOrders(const Problem& problem, OrderSource* source) : problem_(problem), source_(source) {}
  const OtherOrder& of(std::string_view schedule);

 private:
  const Problem& problem_;
  OrderSource* source_;
  std::map<std::string_view, OtherOrder> orders_;
};

}  // namespace pipesim
