// The curves of a calibration file, fitted to what was measured on one GPU.
//
// The simulator reads curves of matmuls, attention, memory-bound kernels, copies to the host and
// collectives (docs/how-to/calibration.md). People read the latency and bandwidth of every kernel,
// copy and message by its size. A curve that cannot be fitted is named with the reason.
// Deterministic.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/collective.h"
#include "models/gpu.h"
#include "validate/calibration/measurements.h"

namespace pipesim::calibration {

using Numbers = std::vector<std::pair<std::string, std::string>>;  // names and values with units

// In the form of the hardware catalogue and of calibration files.
[[nodiscard]] Numbers matmul_numbers(const Gpu& gpu);
[[nodiscard]] Numbers collective_numbers(const CollectiveCurve& curve);

struct FittedRow {
  std::string point;  // its key
  Seconds measured;
  double spread = 0;  // of repeated measurements
  double error = 0;   // (curve - measured) / measured
};

struct FittedCurve {
  std::string name;
  Numbers numbers;
  std::vector<FittedRow> rows;
};

struct Fitted {
  std::vector<FittedCurve> curves;   // what the simulator reads
  std::vector<FittedCurve> by_size;  // seconds = latency + bytes / bandwidth
  std::vector<FittedRow> layers;     // whole passes of layers against the curves' sum
  std::vector<NotMeasured> not_fitted;
};

// `catalogue` is the GPU's entry: its peaks and memory bandwidth are what efficiencies are shares
// of, and its launch and head ramps stand where the measurements do not tell. All-reduces of at
// least `nvls_ranks` ranks (0: none) ran in the switch.
[[nodiscard]] Fitted fit_measurements(const Measurements& measured, const Gpu& catalogue,
                                      int nvls_ranks);

}  // namespace pipesim::calibration
