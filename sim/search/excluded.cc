#include "sim/search/excluded.h"

#include "sim/pipeline/unequal_units.h"
#include "sim/planning/room.h"
#include "sim/search/ordering.h"

namespace pipesim {
namespace {

constexpr double kWidth = 2e-3;     // of halving, as a share
constexpr double kTimeUnits = 1e4;  // of `most`: ordering.h compares to a millionth of one

// Times in units, bytes in shares of a microbatch.
Problem in_units(Problem problem, Bytes limit, double unit) {
  const Bytes one = problem.device_activation();
  const double share = one > Bytes(0) ? 1 / one.value() : 1;
  for_all_stages(problem, [&](StageCost& stage) {
    for (Seconds* each :
         {&stage.forward, &stage.backward_input, &stage.backward_weight, &stage.transfer}) {
      *each = (1 / unit) * *each;
    }
    stage.activation = share * stage.activation;
    stage.weight_stash = share * stage.weight_stash;
  });
  problem.activation_limit = share * (kRounding * limit);
  return problem;
}

}  // namespace

Seconds excluded_below(const Problem& problem, Bytes limit, Seconds least, Seconds most) {
  const Shape& shape = problem.shape;
  const int passes = 3 * problem.placement.virtual_stages() * shape.units();
  if (shape.splits > 1 || passes > kMostExcluded || least >= (1 - 1e-9) * most) return least;
  const double unit = most.value() / kTimeUnits;
  const Problem scaled = in_units(problem, limit, unit);
  const auto is_excluded = [&](double units) { return Ordering(scaled, units).impossible(); };
  // First all that is faster at all: then the known program is the best.
  const double all = (1 - 1e-6) * kTimeUnits;
  if (is_excluded(all)) return (1 - 1e-6) * most;
  double low = least / most * kTimeUnits;
  double high = all;
  while (high - low > kWidth * kTimeUnits) {
    const double middle = (low + high) / 2;
    (is_excluded(middle) ? low : high) = middle;
  }
  return std::max(least, unit * Seconds(low));
}

}  // namespace pipesim
