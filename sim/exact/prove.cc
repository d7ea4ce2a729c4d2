#include "sim/exact/prove.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <numeric>
#include <vector>

#include "sim/core/error.h"
#include "sim/exact/cbc.h"
#include "sim/exact/formulation.h"
#include "sim/execution/evaluate.h"
#include "sim/pipeline/unequal_units.h"
#include "sim/planning/pairs.h"
#include "sim/planning/room.h"
#include "sim/search/bound.h"
#include "sim/search/ordering.h"

namespace pipesim::exact {
namespace {

// With more pairs of passes, counting the undecided ones takes long, and most are undecided.
constexpr int kMostPairs = 100'000;

Seconds time_in(const Program& program, const Problem& problem) {
  return time_of(evaluate(program, problem), problem.objective);
}

std::vector<Seconds*> seconds_in(Problem& problem) {
  std::vector<Seconds*> all;
  for_all_stages(problem, [&all](StageCost& stage) {
    for (Seconds* each :
         {&stage.forward, &stage.backward_input, &stage.backward_weight, &stage.transfer}) {
      all.push_back(each);
    }
  });
  return all;
}

// The largest unit of which all are whole multiples, where they are of some power of ten of at
// least `least` seconds; else 0.
double common_unit(const std::vector<Seconds*>& all, double least) {
  for (double power = 1; power >= least; power /= 10) {
    std::int64_t divisor = 0;
    const bool whole = std::ranges::all_of(all, [&](const Seconds* each) {
      const double count = each->value() / power;
      divisor = std::gcd(divisor, std::llround(count));
      return std::abs(count - std::round(count)) < 1e-6;
    });
    if (whole) return static_cast<double>(divisor) * power;
  }
  return 0;
}

// The unit of time (prove.h).
double unit_of(Problem problem, double time) {
  if (!problem.kinds.empty()) problem.stages.clear();  // the mean, which no unit takes
  const double least = time / kMostUnits;
  return std::max(least, common_unit(seconds_in(problem), least));
}

// Seconds in units, whole where they nearly are; bytes in shares of what a microbatch keeps.
Problem scaled(Problem problem, Bytes limit, double unit) {
  for (Seconds* each : seconds_in(problem)) {
    const double units = each->value() / unit;
    const double whole = std::round(units);
    *each = Seconds(std::abs(units - whole) < 1e-3 ? whole : units);
  }
  const Bytes one = problem.device_activation();
  const double scale = one > Bytes(0) ? 1 / one.value() : 1;
  for_all_stages(problem, [scale](StageCost& stage) {
    stage.activation = scale * stage.activation;
    stage.weight_stash = scale * stage.weight_stash;
  });
  problem.activation_limit = scale * (kRounding * limit);
  return problem;
}

// Pairs of passes on one device, over all devices.
std::int64_t pairs_of(const Problem& problem) {
  std::int64_t pairs = 0;
  for (int d = 0; d < problem.shape.devices; ++d) {
    const std::int64_t passes = 3L * problem.placement.chunks(d) * problem.shape.microbatches;
    pairs += passes * (passes - 1) / 2;
  }
  return pairs;
}

int open_pairs_of(const Ordering& ordering) {
  int open = 0;
  for (int d = 0; d < ordering.problem().shape.devices; ++d) {
    const auto& tasks = ordering.of_device(d);
    for (const int i : tasks) {
      open += static_cast<int>(
          std::ranges::count_if(tasks, [&](int j) { return i < j && ordering.is_open(i, j); }));
    }
  }
  return open;
}

void check(const Program& program, const Problem& problem, double time) {
  const double evaluated = time_in(program, problem).value();
  if (evaluated > time + 0.01 + 1e-5 * time) {
    throw LogicError(fmt::format("the solver says {}, its order takes {}", time, evaluated));
  }
  if (evaluate(program, problem).peak_activation() > (1 + 1e-6) * *problem.activation_limit) {
    throw LogicError("the solver's order does not keep the limit");
  }
}

// Asks CBC, once the limit on undecided pairs and its being there are settled.
void solve(const Ordering& ordering, const Problem& problem, const ProveOptions& options,
           Proof& proof) {
  const Formulation formulation(ordering);
  const Solution solution = run_cbc(formulation.milp(), formulation.encode(proof.program),
                                    options.seconds, options.folder);
  if (!solution.found) {
    proof.ended = Ended::kNoAnswer;
    return;
  }
  const auto value = solution.values.find("z");
  const double said = value == solution.values.end() ? 0 : value->second;
  const Program found = formulation.decode(solution.values);
  check(found, ordering.problem(), said);
  const Seconds time = time_in(found, problem);
  if (time < proof.time) {
    proof.program = found;
    proof.time = time;
  }
  proof.ended = solution.proven ? Ended::kProven : Ended::kTimeLimit;
  const Seconds bound = (solution.bound - 1e-3) * proof.unit;
  proof.bound = solution.proven ? proof.time : std::clamp(bound, proof.bound, proof.time);
}

}  // namespace

Proof prove(const Program& start, const Problem& problem, Bytes limit,
            const ProveOptions& options) {
  Proof proof{start, time_in(start, problem), bound_with_pairs(problem, limit).seconds(),
              Seconds(0)};
  proof.unit = Seconds(unit_of(problem, proof.time.value()));
  if (proof.time <= (1 + 1e-9) * proof.bound) return proof;
  if (gains_by_pairs(problem)) {
    proof.ended = Ended::kPairs;
    return proof;
  }
  proof.open_pairs = pairs_of(problem);
  if (proof.open_pairs > kMostPairs) {
    proof.ended = Ended::kTooLarge;
    return proof;
  }
  const Problem whole = scaled(problem, limit, proof.unit.value());
  const double time = time_in(start, whole).value();
  const Ordering ordering(whole, time * (1 + 1e-12));
  if (ordering.impossible()) throw LogicError("the order takes less than is held possible");
  proof.open_pairs = open_pairs_of(ordering);
  proof.bound =
      std::max(proof.bound, Seconds(ordering.least_cost() * proof.unit.value() * (1 - 1e-9)));
  if (proof.open_pairs > kMostOpenPairs) {
    proof.ended = Ended::kTooLarge;
  } else if (!cbc_version(options.folder)) {
    proof.ended = Ended::kNoSolver;
  } else {
    solve(ordering, problem, options, proof);
  }
  return proof;
}

}  // namespace pipesim::exact
