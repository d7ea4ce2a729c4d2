// Units of a problem that cost unequally: microbatches of other lengths, slices of a sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/pipeline/problem.h"

namespace pipesim {

// All seconds and bytes of a stage times a factor; what is not known stays so.
StageCost scaled(const StageCost& cost, double factor);

// All stages that a problem says the cost of: of every kind, and those planned with.
void for_all_stages(Problem& problem, const auto& change) {
  for (StageCost& stage : problem.stages) change(stage);
  for (UnitKind& kind : problem.kinds) {
    for (StageCost& stage : kind.stages) change(stage);
  }
}

// The problem whose units all have, field by field, the cost of the cheapest of them on that stage.
// A bound of it bounds the problem, in whatever order units run. O(kinds x stages).
Problem of_cheapest_units(Problem problem);

// Seconds of F, B and W of every microbatch on all stages. Requires kinds. O(kinds x stages +
// units).
std::vector<double> works_of_microbatches(const Problem& problem);

// The kinds of units whose microbatches come in this order. Requires kinds. O(units).
std::vector<std::uint32_t> kinds_in_order(const Problem& problem, std::span<const int> order);

// Gives every unit its kind. `Problem::stages` becomes what is planned with: the mean seconds over
// the units and the largest bytes. Where all are of one kind, of size 1, the problem becomes one of
// equal units. Requires a kind for every unit, and of every kind a unit. O(kinds x stages + units).
void set_kinds(Problem& problem, std::vector<UnitKind> kinds,
               std::vector<std::uint32_t> kind_of_unit);

}  // namespace pipesim
