// Refines an order whose transfers hold devices. `refine` times orders without that, so that each
// order here is simulated.
#pragma once

#include <memory>
#include <span>

#include "sim/case/case.h"
#include "sim/core/units.h"
#include "sim/metrics/report.h"
#include "sim/pipeline/problem.h"
#include "sim/pipeline/program.h"
#include "sim/search/refine.h"

namespace pipesim {

// The time of a simulated order that counts, as `time_of` an evaluated one.
Seconds time_of(const Report& report, Objective objective);

struct SimulatedOrder {
  std::shared_ptr<const Program> program;
  Seconds iteration;  // infinite where its devices wait for each other
  Seconds time;       // by the problem's objective; likewise
};

// Simulates the case with this program, which it has from then on.
SimulatedOrder simulated(Case& made, Program program);

// The order of least iteration, from the shortest of `starts`, each with every W directly behind
// its B as one BW or all apart. Where the devices of all wait for each other, microbatches first
// run one at a time. Moves passes within their device and the limit, and keeps what makes the
// iteration no longer. Ends at `options.bound` of the time. `like` has the costs and calls of such
// orders, `problem` is its own with bytes. Deterministic for a seed. O(effort).
SimulatedOrder refine_blocking(const Case& like, std::span<const Program> starts,
                               const Problem& problem, Bytes limit, const RefineOptions& options);

}  // namespace pipesim
