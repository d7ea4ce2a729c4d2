// The curves of a calibration file, fitted to what was measured on one GPU.
//
// The simulator reads curves of matmuls, attention, memory-bound kernels, copies to the host,
// collectives, the host's time and the spread of passes (docs/reference/calibration.md). People
// read the latency and bandwidth of every kernel, copy and message by its size. A curve that cannot
// be fitted is named with the reason. Deterministic.
#pragma once

#include <string>
#include <vector>

#include "models/collective.h"
#include "models/gpu.h"
#include "validate/calibration/fitted_curve.h"
#include "validate/calibration/measurements.h"

namespace pipesim::calibration {

// A curve off by more in the median says nothing about the device: it was disturbed, or is of
// another kind.
inline constexpr double kRefused = 0.5;

// In the form of the hardware catalogue and of calibration files.
[[nodiscard]] Numbers matmul_numbers(const Gpu& gpu);
[[nodiscard]] Numbers collective_numbers(const CollectiveCurve& curve);

struct Fitted {
  std::vector<FittedCurve> curves;   // what the simulator reads
  std::vector<FittedCurve> by_size;  // seconds = latency + bytes / bandwidth
  std::vector<FittedRow> layers;     // whole passes of layers against the curves' sum
  std::vector<NotMeasured> not_fitted;
};

// `catalogue` is the GPU's entry: its peaks and memory bandwidth are what efficiencies are shares
// of, and its launch and head ramps stand where the measurements do not tell. `node` is the entry's
// too: its curves stand for collectives within a node where none was measured. All-reduces of at
// least `nvls_ranks` ranks (0: none) ran in the switch.
[[nodiscard]] Fitted fit_measurements(const Measurements& measured, const Gpu& catalogue,
                                      const Interconnect& node, int nvls_ranks);

}  // namespace pipesim::calibration
