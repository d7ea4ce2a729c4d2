// Numbers of no kernel: the host's time for an operation, and how far passes spread.
#pragma once

#include <vector>

#include "validate/calibration/fitted_curve.h"
#include "validate/calibration/measurements.h"

namespace pipesim::calibration {

// Rows of a layer's passes timed on the host (`host/F`, `B`, `FB`, by mode) and of one launch
// (`launch/host_launch`).
[[nodiscard]] std::vector<const Point*> host_points(const Measurements& measured);

// Seconds of the host for an operation as models/software.h counts them, by mode, attention being
// one where `fused`; of a mode without passes a launch, which is the least that eager and compiled
// code can take.
// std::invalid_argument for a row that states no layer.
[[nodiscard]] FittedCurve fit_host(const std::vector<const Point*>& points, bool fused);

// The sigma of a log-normal factor whose middle 80% is as wide as that of the rows, each of which
// holds one pass on all GPUs of a node at once.
[[nodiscard]] FittedCurve fit_jitter(const std::vector<const Point*>& points);

}  // namespace pipesim::calibration
