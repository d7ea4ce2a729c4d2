// Anchoring: from measured steps the few quantities that explain how far simulated ones are off.
//
// A step is T(c, r) + f. Here c is a factor on the seconds of all kernels, r on those of gradients
// and parameters over the data ranks (CostFactors). One run gives c alone, so that its step is met.
// Several runs give the least squares of relative differences. f needs runs with different numbers
// of microbatches, r with different data-parallel sizes. Either is fitted only where the runs tell
// it apart. There 1% of noise in each measured step moves it by at most kMostNoise of its
// reference. The factors and f are never negative.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace pipesim {

// A scenario of one schedule, whose seconds follow from its model and have no anchor.
struct MeasuredStep {
  Scenario scenario;
  Seconds measured;
  std::string name;  // of its file, or what else tells people which run it is
};

struct AnchoredRun {
  Seconds simulated;  // without the anchor
  Seconds anchored;
};

struct AnchorFit {
  CostFactors factors;
  std::vector<AnchoredRun> runs;          // in the order of what was measured
  std::vector<std::string> unidentified;  // "reduction: all runs have 16 data-parallel ranks"
};

// Largest standard error with 1% of noise, of the compute factor and of the factor on the
// reduction. For the fixed part it is a share of the shortest measured step.
inline constexpr double kMostNoise = 0.1;

// Simulates each run about ten times for every quantity. Throws what prepare and simulate do, and
// InfeasibleError where one run's step cannot be met by any factor on compute. Requires a run.
AnchorFit fit_anchor(std::span<const MeasuredStep> runs);

// The run's step as simulated with these factors.
Seconds step_with(const Scenario& scenario, const CostFactors& factors);

}  // namespace pipesim
