// Limits for a plan's points.
#pragma once

#include <gtest/gtest.h>

#include "sim/case/simulate.h"
#include "sim/core/error.h"
#include "sim/layouts/bound.h"
#include "sim/layouts/space.h"
#include "sim/prepare/prepare.h"

namespace pipesim::testing {

// That the bounds of the point's seconds and bytes are none above those of its run. False where the
// schedule refuses the point.
inline bool bounds_hold(const PlanQuestion& question, const PlanPoint& point) {
  constexpr double kBelow = 1 - 1e-9;
  try {
    const Case made = prepare_first(scenario_of(question, point));
    const Report run = simulate(made).report;
    const RunBound bound = run_bound(made);
    EXPECT_LE(kBelow * work_bound(made), run.iteration) << label_of(point);
    EXPECT_LE(kBelow * bound.iteration, run.iteration) << label_of(point);
    EXPECT_LE(kBelow * bound.memory, *run.peak_memory) << label_of(point);
    const LeastMemory least = least_memory(made);
    const Bytes kept = offloads(point) ? Bytes(0) : least.activations;
    EXPECT_LE(kBelow * (least.beside + kept), *run.peak_memory) << label_of(point);
  } catch (const InputError&) {
    return false;
  }
  return true;
}

}  // namespace pipesim::testing
